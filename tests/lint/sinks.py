"""Output for people goes through few functions, which remove control characters from files, peers and users.

Other files that write to stdout or stderr would be holes: fprintf, fputs, printf, std::cout and std::cerr, and write() to the
standard descriptors.
"""
import re

from tree import code_of

HERE = "tests/lint/sinks.py"
# The functions of the output, and how they make it harmless.
SINKS = {
    "common/base/host_limits.cc": "uncaughtText()",
    "common/base/print.cc": "printableLines()",
    "common/base/stderr_sink.cc": "printableLines()",
}
# Example programs in C++, which print their results.
APART = ("common/api/examples/",)
WRITES = re.compile(r"\b(?:std::)?(?:fprintf|fputs|fputc|fwrite|printf|puts|putchar|vfprintf|perror)\(|\bstd::c(?:out|err|log)\b|"
                    r"::write\(\s*(?:STDOUT_FILENO|STDERR_FILENO|1|2)\b")


def check(root, files, sinks=None):
    sinks = SINKS if sinks is None else sinks
    seen = set()
    for path in files:
        name = str(path)
        if path.parts[0] == "tests" or name.startswith(APART):
            continue
        code = code_of((root / path).read_text(errors="replace"))
        if name in sinks:
            seen.add(name)
            if sinks[name].removesuffix(")") not in code:
                yield f"{name}:1: error: it writes what a person reads without {sinks[name]}"
            continue
        for match in WRITES.finditer(code):
            number = code.count("\n", 0, match.start()) + 1
            yield (f"{name}:{number}: error: writes to stdout or stderr by itself: print(), log:: and printBounded() leave no "
                   "control characters in it")
    for name in sorted(set(sinks) - seen):
        yield f"{HERE}:1: error: there is no {name}: take it off the list"
