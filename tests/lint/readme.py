"""The verbs, scripts, configurations and tables of dtf-bench that README.md names are there."""
import re


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


def check(root):
    """The commands and files in README.md exist: verbs of dtf-launch, tables of dtf-bench, scripts, configurations."""
    readme = root / "README.md"
    if not readme.exists():
        return
    verbs = set(re.findall(r'^    \{"([a-z]+)", Verb::', (root / "launcher/options.cc").read_text(), re.M)) | {"help"}
    tables = set(re.findall(r'^    \{"([a-z-]+)",', (root / "tests/bench/main.cc").read_text(), re.M))
    for number, code in code_in(readme.read_text()):
        for verb in re.findall(r"(?:^|[/ ])dtf-launch ([a-z]+)(?= |$)", code):
            if verb not in verbs:
                yield f"README.md:{number}: error: dtf-launch has no verb '{verb}'"
        for words in re.findall(r"dtf-bench((?: --[a-z]+(?: \d+)?| [a-z-]+)+)", code):
            for table in re.findall(r"(?<= )[a-z][a-z-]*", words):
                if table not in tables:
                    yield f"README.md:{number}: error: dtf-bench has no table '{table}'"
        for path in re.findall(r"(?<![\w/.-])((?:scripts|configs|tests)/[\w./-]*\w)", code):
            if not (root / path).exists():
                yield f"README.md:{number}: error: {path} is not there"
