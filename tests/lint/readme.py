"""The chapters of the documentation name verbs, scripts, configurations, tables of dtf-bench and places that exist.

README.md stays short, so that a newcomer reads it to its end.
"""
import re

import chapters

README_BYTES_MAX = 14 * 1024
README_LINES_MAX = 260


def code_in(text):
    """(line number, code) of Markdown: the lines of its blocks, and the texts within backquotes in one line."""
    in_block = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("```"):
            in_block = not in_block
        elif in_block:
            yield number, line.partition("#")[0]
        else:
            for code in re.findall(r"`([^`]+)`", line):
                yield number, code


class Commands:
    """What a reader may type."""

    def __init__(self, root):
        self.root = root
        self.verbs = set(re.findall(r'^    \{"([a-z]+)", Verb::', (root / "launcher/verbs.cc").read_text(), re.M)) | {"help"}
        self.tables = set(re.findall(r'^    \{"([a-z-]+)",', (root / "tests/bench/main.cc").read_text(), re.M))

    def problems(self, code):
        for verb in re.findall(r"(?:^|[/ ])dtf-launch ([a-z]+)(?= |$)", code):
            if verb not in self.verbs:
                yield f"dtf-launch has no verb '{verb}'"
        for words in re.findall(r"dtf-bench((?: --[a-z]+(?: \d+)?| [a-z-]+)+)", code):
            for table in re.findall(r"(?<= )[a-z][a-z-]*", words):
                if table not in self.tables:
                    yield f"dtf-bench has no table '{table}'"
        for path in re.findall(r"(?<![\w/.-])((?:scripts|configs|tests)/[\w./-]*\w)", code):
            if not (self.root / path).exists():
                yield f"{path} is not there"


def check_blocks(root, name, text):
    for block in chapters.blocks(text):
        where = f"{name}:{block.line}: error: "
        if not block.language:
            yield where + "a block without its language: sh is run by tests/e2e/chapters_test.py, text is not"
        if block.mark == "not run" and not block.words:
            yield where + "commands that aren't run, without a reason"
        if block.mark in ("run by", "copy of") and not (root / block.words).exists():
            yield where + f"{block.words} is not there"
        elif block.mark == "copy of" and block.text not in (root / block.words).read_text():
            yield where + f"{block.words} has no such text: copy the block again"


def check_links(root, name, text):
    """Yields (problem or None, linked chapter or None)."""
    for number, target in chapters.links(text):
        path, _, anchor = target.partition("#")
        linked = (root / name).parent / path if path else root / name
        where = f"{name}:{number}: error: {target}"
        if not linked.exists():
            yield f"{where} is not there", None
            continue
        if anchor and linked.suffix == ".md" and anchor not in chapters.anchors(linked.read_text()):
            yield f"{where}: it has no such heading", None
        yield None, linked.resolve().relative_to(root.resolve()).as_posix()


def check_size(name, text):
    if len(text.encode()) > README_BYTES_MAX:
        yield f"{name}:1: error: {len(text.encode())} bytes, {README_BYTES_MAX} at most: move a part to its chapter"
    if len(text.splitlines()) > README_LINES_MAX:
        yield f"{name}:1: error: {len(text.splitlines())} lines, {README_LINES_MAX} at most"


def check(root):
    names = chapters.chapters(root)
    if not names:
        return
    commands, linked = Commands(root), {"README.md"}
    for name in names:
        if not (root / name).exists():
            yield f"meson.build:1: error: the chapter {name} is not there"
            continue
        text = (root / name).read_text()
        if name == "README.md":
            yield from check_size(name, text)
        for number, code in code_in(text):
            for problem in commands.problems(code):
                yield f"{name}:{number}: error: {problem}"
        yield from check_blocks(root, name, text)
        for problem, target in check_links(root, name, text):
            if problem:
                yield problem
            elif target != name:
                linked.add(target)
    for name in names:
        if name not in linked:
            yield f"{name}:1: error: no chapter links to it"
    for target in sorted(linked):
        if target.endswith(".md") and target not in names:
            yield f"{target}:1: error: a chapter links to it, and `chapters` of meson.build doesn't install it"
