"""Parses the --help of a program of dtf: the tables in the programs are the only place where verbs and options are
written, and manual pages and completions are made from their output.
"""
import re
import subprocess

VERB = re.compile(r"^  dtf-launch (\S+) (.*?)  +(\S.*)$")
OPTION = re.compile(r"^  --([a-z][a-z-]*)(?: ([A-Z][A-Z=|]*))?  +(\S.*)$")
FEW = re.compile(r"^  (--\S+(?:, --\S+)+)$")  # "  --help, --version"
LETTER = re.compile(r"^(-[a-z]): ")
ONLY = re.compile(r"(?:^|; )([a-z]+(?:,? [a-z]+)*): ")  # "up, serve: ...; graph: ..."


class Option:
    """--name METAVAR: `letter` is its short form, `verbs` the verbs that accept it (empty: all)."""

    def __init__(self, name, metavar, what, verbs):
        letter = LETTER.match(what)
        self.letter = letter.group(1) if letter else None
        self.what = what[letter.end():] if letter else what
        self.name, self.metavar = name, metavar
        # "keys init, issue: ..." applies to `keys`, although `init` is a verb, too; "worker: ..."
        # and "without keys: ..." apply to none.
        self.verbs = []
        for only in ONLY.finditer(self.what):
            words = [phrase.split()[0] for phrase in only.group(1).split(", ")]
            self.verbs += [word for word in words if word in verbs] if words[0] in verbs else []


def joined(lines):
    """Each option in one line: its description may continue below."""
    whole = []
    for line in lines:
        if whole and re.match(" {28}[^ ]", line):
            whole[-1] += " " + line.strip()
        else:
            whole.append(line)
    return whole


class HelpText:
    """`about`: one sentence; `verbs`: {name: (its words, description)}; `sections`: [(heading or None, [line])]."""

    def __init__(self, text):
        first, _, rest = text.partition("\n")
        self.program, _, self.about = first.partition(": ")
        self.verbs, self.sections, lines = {}, [], []
        heading = None
        for line in rest.splitlines():
            if re.fullmatch(r"[A-Z][A-Za-z ]*:", line):
                self.sections.append((heading, joined(lines)))
                heading, lines = line[:-1], []
                continue
            lines.append(line)
            if match := VERB.match(line):
                self.verbs[match.group(1)] = (match.group(2).strip(), match.group(3))
        self.sections.append((heading, joined(lines)))

    def options(self):
        found = []
        for _, lines in self.sections:
            for line in lines:
                if match := OPTION.match(line):
                    found.append(Option(*match.groups(), self.verbs))
                elif match := FEW.match(line):
                    found += [Option(name[2:], None, "", self.verbs) for name in match.group(1).split(", ")]
        return found


HEADING = re.compile(r"^[a-z][a-z_0-9]*(?:\.[a-z_0-9]+)*$")


def keys_of(config):
    """The keys that --set takes, by their whole paths, from the output of --help-config: without those of a list's elements and
    of maps with names of a user's own."""
    found, sections = [], [""]  # the first section is the file itself
    for line in config.splitlines()[1:]:
        if re.match(r"^\S", line):
            sections = [part + "." for part in line.split(", ") if HEADING.match(part)]
        elif match := re.match(r"^  (\w+)  +\S", line):
            found += [section + match.group(1) for section in sections]
    return sorted(set(found))


def ask(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout
