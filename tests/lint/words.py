"""Rates of turns of phrase that make a text hard to follow, per folder, in comments, schemas, messages, help and Markdown.

A folder is one of common/, daemons/ or tests/, or another top of the tree. A kind of text in a folder holds a goal if the
turn occurs at most that often per 1000 words, rounded up.

A rate is only a symptom: a sentence that trades "what" for "that which" passes and is no better. Name the thing.

words_listed.py lists the excess over the goals. Its numbers only fall: one that is far too high is an error, too.
`words.py --table` prints the table of today, `words.py --places FOLDER [KIND...]` each occurrence.
"""
import bisect
import collections
import io
import math
import pathlib
import re
import sys
import tokenize

from words_listed import LISTED

HERE = "tests/lint/words_listed.py"
TOPS = ("common", "daemons", "launcher", "gpu", "tests", "scripts", "configs")
SPLIT = ("common", "daemons", "tests")
# Comments of these aren't counted until their code is rebuilt, but their texts for people are.
# The list only gets shorter.
REBUILT = ("launcher",)
KINDS = ("comments", "schemas", "messages", "help", "Markdown")

START = r"(?:^|(?<=[.:;] ))"
# turn: (pattern, most per 1000 words)
TURNS = {
    "nominal What/Who": (START + r"(?:What|Whatever|Who|Whom|Whose|Whoever)\b(?![^.]*\?)", 0.3),
    "who/whom/whose": (r"\b(?:who|whom|whose|whoever)\b", 0.8),
    "what": (r"\bwhat\b", 2.5),
    "fragment": (r"(?:^|(?<=\. ))(?:Of|Not|As|Also)\b", 0.6),
    "those of": (r"\b(?:those of|that of|of those|those that|those who)\b", 0.3),
    "said/told/asked": (r"\b(?:is|are|was|were|be|been) (?:said|told|asked|heard)\b", 0.2),
}
PATTERNS = {turn: re.compile(pattern) for turn, (pattern, _) in TURNS.items()}

CPP = {".h", ".c", ".cc", ".cu", ".cuh"}
MESON = {"meson.build", "meson_options.txt"}
# A C++ character, a raw text, a text or a comment: whichever begins first.
CPP_PARTS = re.compile(r"'(?:\\.|[^'\\\n])'" r'|R"(\w*)\((?P<raw>.*?)\)\1"' r'|"(?P<text>(?:\\.|[^"\\\n])*)"'
                       r"|//(?P<line>[^\n]*)|/\*(?P<block>.*?)\*/", re.S)
# A C++ text is help if the name of an option or key stands before it: {"name", "help"} or
# key("name", "help").
HELP = re.compile(r'[{(]\s*"[\w.-]*",\s*(?:"[^"\n]*",\s*)?$')
WORDS_OF_A_MESSAGE = 3  # a literal with fewer is a name


def folder_of(path):
    parts = path.parts
    return "/".join(parts[:2]) if parts[0] in SPLIT and len(parts) > 2 else parts[0] if len(parts) > 1 else "."


def joined(lines):
    """Joins lines (number, text, whether the comment stands alone) to blocks (number, text): a lone comment continues a block."""
    block = []
    for number, text, alone in lines:
        if block and not (alone and number == block[-1][0] + 1):
            yield block[0][0], " ".join(each for _, each in block)
            block = []
        block.append((number, text.strip()))
    if block:
        yield block[0][0], " ".join(each for _, each in block)


def cpp_texts(text):
    """Yields (kind, line number, text) of C++ comments and literals; adjacent literals are one text."""
    starts = [0] + [match.end() for match in re.finditer("\n", text)]
    comments, literal, ended = [], None, 0
    for part in CPP_PARTS.finditer(text):
        number = bisect.bisect_right(starts, part.start())
        if part["line"] is not None:
            alone = not text[starts[number - 1]:part.start()].strip()
            comments.append((number, part["line"], alone))
        elif part["block"] is not None:
            comments.append((number, re.sub(r"\n\s*\*?", " ", part["block"]), True))
        elif part["text"] is not None or part["raw"] is not None:
            words = part["text"] if part["text"] is not None else part["raw"]
            if literal and not text[ended:part.start()].strip():
                literal[2] += words
            else:
                if literal:
                    yield tuple(literal)
                literal = ["help" if HELP.search(text, max(0, part.start() - 200), part.start()) else "messages", number, words]
            ended = part.end()
    if literal:
        yield tuple(literal)
    for number, words in joined(comments):
        yield "comments", number, words


def hash_texts(text, kind="comments"):
    """Yields comments that begin with # in Cap'n Proto, shell and Meson, not within quotes."""
    lines = []
    for number, line in enumerate(text.splitlines(), 1):
        match = re.match(r"((?:[^#\"']|\"[^\"]*\"|'[^']*')*?)(?<![^\s;({\[])#(?!!)(.*)", line)
        if match:
            lines.append((number, match[2], not match[1].strip()))
    for number, words in joined(lines):
        yield kind, number, words


def shell_texts(text):
    yield from hash_texts(text)
    for number, line in enumerate(text.splitlines(), 1):
        for words in re.findall(r"\b(?:echo|printf|die|fail|usage|say)\b[^\"'#]*(?:\"([^\"]*)\"|'[^']*')", line):
            yield "messages", number, words


def python_texts(text):
    """Yields comments and docstrings."""
    lines, fresh = [], True
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT:
                lines.append((token.start[0], token.string.lstrip("#!"), not token.line[:token.start[1]].strip()))
            elif token.type == tokenize.STRING and fresh:
                yield "comments", token.start[0], " ".join(token.string.strip("\"'").split())
            if token.type not in (tokenize.COMMENT, tokenize.NL, tokenize.INDENT, tokenize.DEDENT):
                fresh = token.type == tokenize.NEWLINE
    except (tokenize.TokenError, IndentationError):  # a bad sample of a test
        return
    for number, words in joined(lines):
        yield "comments", number, words


def markdown_texts(text):
    """Yields paragraphs, headings, items of lists and cells of tables, without blocks of code."""
    block, begin, in_code = [], 0, False
    for number, line in enumerate(text.splitlines() + [""], 1):
        if line.lstrip().startswith("```"):
            in_code = not in_code
            line = ""
        elif in_code:
            continue
        new = re.match(r"\s*(?:#+|[-*]|\d+\.)\s+|\s*\||\s*$", line)
        if new and block:
            yield "Markdown", begin, " ".join(block)
            block = []
        if line.lstrip().startswith("|"):
            for cell in line.strip().strip("|").split("|"):
                yield "Markdown", number, cell.strip()
        elif line.strip():
            begin = begin if block else number
            block.append(line[new.end():] if new else line.strip())


def texts_of(path, text):
    if path.suffix in CPP:
        is_program = path.parts[0] != "tests"
        return (each for each in cpp_texts(text)
                if each[0] == "comments" or is_program and len(each[2].split()) >= WORDS_OF_A_MESSAGE)
    if path.suffix == ".capnp":
        return hash_texts(text, "schemas")
    if path.suffix == ".py":
        return python_texts(text)
    if path.suffix == ".sh":
        return shell_texts(text)
    if path.suffix == ".md":
        return markdown_texts(text)
    return hash_texts(text) if path.name in MESON else ()


def files_of(root):
    found = [p for p in root.iterdir() if p.is_file()] + [p for top in TOPS for p in (root / top).rglob("*")]
    return sorted(p.relative_to(root) for p in found
                  if p.suffix in CPP | {".capnp", ".py", ".sh", ".md"} or p.name in MESON)


def turns_in(text):
    """Yields (turn, excerpt) for each turn of phrase in a text, ignoring code in backquotes."""
    text = re.sub(r"`[^`]*`", "`code`", text)
    for turn, pattern in PATTERNS.items():
        for match in pattern.finditer(text):
            yield turn, text[max(0, match.start() - 40):match.end() + 80]


def count(root):
    """Returns {(folder, kind): (words, {turn: [(file, line number, excerpt)]})}."""
    counted = {}
    for path in files_of(root):
        for kind, number, text in texts_of(path, (root / path).read_text(errors="replace")):
            each = counted.setdefault((folder_of(path), kind), [0, collections.defaultdict(list)])
            each[0] += len(text.split())
            for turn, excerpt in turns_in(text):
                each[1][turn].append((path, number, excerpt))
    return counted


def is_free(folder, kind, rebuilt=REBUILT):
    return kind == "comments" and folder in rebuilt


def excess_of(counted):
    """Returns {(folder, kind): {turn: occurrences above the goal}}."""
    excess = {}
    for place, (words, turns) in sorted(counted.items()):
        over = {turn: len(turns[turn]) - math.ceil(goal * words / 1000) for turn, (_, goal) in TURNS.items() if turn in turns}
        over = {turn: number for turn, number in over.items() if number > 0}
        if over:
            excess[place] = over
    return excess


def worst(found, most=3):
    files = collections.Counter(path for path, _, _ in found)
    return ", ".join(f"{path} {number}" for path, number in files.most_common(most))


def check(root, listed=None, rebuilt=REBUILT):
    listed = LISTED if listed is None else listed
    counted = count(root)
    excess = excess_of(counted)
    for (folder, kind), over in excess.items():
        allowed = {} if is_free(folder, kind, rebuilt) else listed.get((folder, kind), {})
        for turn, number in over.items():
            if number > allowed.get(turn, 0) and not is_free(folder, kind, rebuilt):
                words, turns = counted[folder, kind]
                path, line, _ = turns[turn][0]
                yield (f"{path}:{line}: error: {kind} of {folder}: {len(turns[turn])} times '{turn}' in {words} words, {number} above "
                       f"{TURNS[turn][1]} per 1000, {allowed.get(turn, 0)} are listed: {worst(turns[turn])}")
    for (folder, kind), over in sorted(listed.items()):
        for turn, number in over.items():
            today = excess.get((folder, kind), {}).get(turn, 0)
            if today == 0:
                yield f"{HERE}:1: error: {kind} of {folder} hold the goal for '{turn}' now, or are gone: take it off the list"
            elif number > 1.25 * today + 2:
                yield f"{HERE}:1: error: {kind} of {folder}: '{turn}' is {today} above the goal: lower the number from {number}"
    for folder in rebuilt:
        if (folder, "comments") not in excess:
            yield f"tests/lint/words.py:1: error: comments of {folder} hold the goals: take it off REBUILT"


def print_table(root):
    for (folder, kind), over in excess_of(count(root)).items():
        if not is_free(folder, kind):
            print(f'    ("{folder}", "{kind}"): {{' + ", ".join(f'"{turn}": {number}' for turn, number in over.items()) + "},")


def print_places(root, folder, kinds):
    for (each, kind), (words, turns) in sorted(count(root).items()):
        if each == folder and kind in kinds:
            print(f"{folder}, {kind}: {words} words; " + ", ".join(f"{turn} {1000 * len(turns[turn]) / words:.2f}" for turn in TURNS))
            for turn, found in turns.items():
                for path, number, excerpt in found:
                    print(f"{path}:{number}: {turn}: {excerpt}")


if __name__ == "__main__":
    tree = pathlib.Path(__file__).parents[2]
    if sys.argv[1:2] == ["--places"] and len(sys.argv) > 2:
        print_places(tree, sys.argv[2], sys.argv[3:] or KINDS)
    elif sys.argv[1:] == ["--table"]:
        print_table(tree)
    else:
        sys.exit(__doc__)
