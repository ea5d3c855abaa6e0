"""The chapters of the documentation: README.md and the Markdown files that the root meson.build installs with it.

A fenced block names its language. A block of commands (`sh`) is run by tests/e2e/chapters_test.py, unless a line before
it says otherwise:

    <!-- not run: REASON -->      nothing runs it here
    <!-- run by: PATH -->         the test at PATH runs these commands
    <!-- terminals -->            each command is a terminal: all run at the same time
    <!-- file: NAME -->           no commands: the block is the content of a file that later commands read
    <!-- copy of: PATH -->        no commands: the block is a part of that file, which a test compiles or runs
"""
import dataclasses
import re

MARK = re.compile(r"^<!-- (not run|run by|terminals|file|copy of)(?:: (.+?))? -->$")
FENCE = re.compile(r"^(\s*)```(\S*)$")


@dataclasses.dataclass
class Block:
    line: int  # of its first line of text
    language: str
    text: str
    mark: str  # "": none
    words: str  # of the mark


def chapters(root):
    """Paths of all chapters, relative to `root`."""
    if not (root / "meson.build").exists():
        return []
    match = re.search(r"^chapters = \[(.*?)^\]", (root / "meson.build").read_text(), re.M | re.S)
    return re.findall(r"'([^']+\.md)'", match.group(1)) if match else []


def blocks(text):
    found, mark, open_block = [], ("", ""), None
    for number, line in enumerate(text.splitlines(), 1):
        if match := FENCE.match(line):
            if open_block is None:
                open_block = Block(number + 1, match.group(2), "", *mark)
            else:
                found.append(open_block)
                open_block, mark = None, ("", "")
        elif open_block is not None:
            open_block.text += line + "\n"
        elif match := MARK.match(line):
            mark = (match.group(1), match.group(2) or "")
        elif line.strip():
            mark = ("", "")
    return found


def slug(heading):
    """The anchor that GitHub gives a heading."""
    text = re.sub(r"[`*]|\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


def anchors(text):
    plain = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
    return {slug(heading) for heading in re.findall(r"^#+ (.+)$", plain, re.M)}


def links(text):
    """(line number, target) of each link to a place in this tree."""
    in_block = False
    for number, line in enumerate(text.splitlines(), 1):
        if FENCE.match(line):
            in_block = not in_block
        elif not in_block:
            for target in re.findall(r"\]\(([^)\s]+)\)", line):
                if not re.match(r"[a-z]+:", target):
                    yield number, target
