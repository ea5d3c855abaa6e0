#!/usr/bin/env python3
"""The manual page of a program, or of its files, from the output of --help, `help VERB` and --help-config.

Usage: man-page.py PROGRAM VERSION              prints PROGRAM(1)
       man-page.py PROGRAM VERSION --config     prints dtf-cluster.yaml(5)
"""
import pathlib
import re
import sys

from help_text import FEW, LETTER, OPTION, VERB, HelpText, ask

SEE_ALSO = ["dtf-launch(1)", "psd(1)", "workerd(1)", "dtf-agent(1)", "dtf-cluster.yaml(5)"]


def roff(text):
    """`text` verbatim: no character is a request or replaced by typography."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq").replace("`", "\\(ga").replace("^", "\\(ha").replace("~", "\\(ti")
    return "\\&" + text if text.startswith(".") else text


def title(name, section, version):
    return [f'.TH "{roff(name)}" {section} "" "dtf {version}" "dtf"']


def literal(lines):
    return [".PP", ".nf", *[roff(line) for line in lines], ".fi"]


def entry(term, words, text):
    return [".TP", f"\\fB{roff(term)}\\fR" + (f" \\fI{roff(words)}\\fR" if words else ""), roff(text)]


def body(lines):
    """The lines of one section: options and verbs as lists, indented lines as they are, the rest as paragraphs."""
    out, paragraph, examples = [], [], []

    def flush():
        nonlocal paragraph, examples
        if paragraph:
            out.extend([".PP", *[roff(line) for line in paragraph]])
        if examples:
            out.extend(literal(examples))
        paragraph, examples = [], []

    for line in lines:
        if match := OPTION.match(line):
            flush()
            name, metavar, what = match.groups()
            letter = LETTER.match(what)
            term = f"{letter.group(1)}, --{name}" if letter else f"--{name}"
            out.extend(entry(term, metavar, what[letter.end():] if letter else what))
        elif match := FEW.match(line):
            flush()
            out.extend(entry(match.group(1), None, ""))
        elif VERB.match(line):
            continue
        elif line.startswith("  "):
            if paragraph:
                flush()
            examples.append(line.strip())
        elif line:
            if examples:
                flush()
            paragraph.append(line)
        else:
            flush()
    flush()
    return out


def verbs(program, text):
    out = []
    for name, (words, what) in text.verbs.items():
        out += entry(name, words, what[0].upper() + what[1:] + ".")
        if name == "help":
            continue
        # Between the first line and the options, which this page has in a list of their own.
        more = ask(program, "help", name).partition("\n")[2].partition("\nOptions:\n")[0].strip()
        if more:
            out += [".IP", *[roff(line) for line in more.splitlines()]]
    return out


def program_page(program, version):
    text = HelpText(ask(program, "--help"))
    out = title(text.program, 1, version)
    out += [".SH NAME", f"{roff(text.program)} \\- {roff(text.about.rstrip('.'))}", ".SH SYNOPSIS"]
    usage = "VERB [ARGUMENT...] [OPTION...]" if text.verbs else "[OPTION...]"
    out += [f"\\fB{roff(text.program)}\\fR {roff(usage)}"]
    described = False
    for heading, lines in text.sections:
        if heading is None:
            if text.verbs:
                out += [".SH VERBS", *verbs(program, text)]
            rest = body(lines)
            if rest:
                out += [".SH DESCRIPTION", *rest]
        elif any(OPTION.match(line) for line in lines):
            out += [] if described else [".SH OPTIONS"]
            described = True
            out += [*([f".SS {roff(heading)}"] if heading != "Options" else []), *body(lines)]
        else:
            out += [f".SH {roff(heading.upper())}", *body(lines)]
    return out + see_also(f"{text.program}(1)")


def see_also(own):
    return [".SH SEE ALSO", ", ".join(f"\\fB{roff(page)}\\fR" for page in SEE_ALSO if page != own)]


def config_page(program, version):
    """Each key: its line ("  key    type"), then its meaning, further indented."""
    out = title("dtf-cluster.yaml", 5, version)
    out += [".SH NAME", "dtf\\-cluster.yaml \\- the tasks of a job of dtf, and what they train"]
    out += [".SH DESCRIPTION", "A file in YAML that \\fBdtf\\-launch\\fR(1) and every task of the job read. An unknown key is an error."]
    for line in ask(program, "--help-config").splitlines():
        if re.match(r"^\S", line):
            out.append(f".SS {roff(line)}")
        elif match := re.match(r"^  (\S+)  +(\S.*)$", line):
            out += [".TP", f"\\fB{roff(match.group(1))}\\fR ({roff(match.group(2))})"]
        elif line.strip():
            out.append(roff(line.strip()))
    return out + see_also("dtf-cluster.yaml(5)")


def main():
    program, version = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2]
    make = config_page if sys.argv[3:] == ["--config"] else program_page
    print("\n".join(make(str(program), version)))


main()
