"""No file is longer than 450 lines, no function outside of a class than 70."""
import re

LINES_MAX = 450
FUNCTION_LINES_MAX = 70


def check_lengths(root, files):
    for path in files:
        lines = len((root / path).read_text(errors="replace").splitlines())
        if lines > LINES_MAX:
            yield f"{path}:{lines}: error: {lines} lines; a file fits a reader in {LINES_MAX}"


def check_function_lengths(root, files):
    """Functions outside of classes, as clang-format lays them out: from a line that starts in the first column to a "}"
    that stands there alone."""
    for path in files:
        start, has_body = 0, False
        for number, line in enumerate((root / path).read_text(errors="replace").splitlines(), 1):
            if line == "}" and start and has_body:
                if number - start + 1 > FUNCTION_LINES_MAX:
                    yield (f"{path}:{start}: error: a function of {number - start + 1} lines; "
                           f"one fits a screen in {FUNCTION_LINES_MAX}")
                start = 0
            if not start and re.match(r"(?!(namespace|class|struct|enum|union|using|extern)\b)[A-Za-z\[:]", line):
                start, has_body = number, False
            has_body = has_body or line.endswith("{")
            if start and not has_body and line.endswith((";", "}")) or line.startswith("}"):
                start = 0  # a declaration, or the end of something else


def check(root, files):
    yield from check_lengths(root, files)
    yield from check_function_lengths(root, files)
