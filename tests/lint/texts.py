"""No code searches or compares the text of an error: it branches on the error's code, which no rewording changes.

The check finds `message()`, `what()` and `getDescription()`, and local variables made from them, before and after == and
!=, and in find(), starts_with() and the like. The conversion files may search: they read the texts of other libraries.
It misses a text that a function receives as an argument.
"""
import re

from tree import code_of

HERE = "tests/lint/texts.py"
CONVERSIONS = {"common/base/host_limits.cc", "common/net/error_bridge.cc", "common/net/error_bridge.h"}
# Files that search texts today, and why. The list only gets shorter.
ALLOWED = {
    "common/base/json_text.cc": "removes the prefix that nlohmann-json puts before each of its texts",
}

CALL = r"\b(?<!\w)(?:message|what|getDescription)\(\)"
LOOKS = r"(?:find\w*|rfind|starts_with|ends_with|startsWith|endsWith|contains|compare)\("
FUNCTIONS = r"\b(?:strstr|strcasestr|strn?cmp|strn?casecmp|regex_\w+|contains|startsWith|endsWith)\("
TAINTS = r"(?:auto|std::string|std::string_view|string|kj::StringPtr|kj::String|char\s*\*)\s*(?:const)?\s*[&*]?\s*"


def searched(text):
    """Patterns of an expression `text` (a pattern itself) that is searched or compared."""
    ends = r"(?:\.(?:cStr|c_str|begin|end|data)\(\))?"
    return [rf"{text}{ends}\s*(?:\.|->)\s*{LOOKS}", rf"{text}{ends}\s*[=!]=(?!=)",
            rf"\bstring(?:_view)?[({{][^;{{}}]*?{text}{ends}\s*[)}}]\s*(?:\.\s*{LOOKS}|[=!]=)",
            rf"[=!]=\s*(?:[\w.]|->|\(\))*{text}{ends}(?![\w.(]|->)", rf"{FUNCTIONS}[^;{{}}]*{text}"]


def scope_after(code, position):
    """Where the block ends that `position` is in, as clang-format indents: at a "}" further left than its line."""
    begin = code.rfind("\n", 0, position) + 1
    indent = len(code[begin:position]) - len(code[begin:position].lstrip(" "))
    end = re.compile(rf"^ {{0,{max(indent - 1, 0)}}}\}}", re.M).search(code, position)
    return end.start() if end else len(code)


def places_that_search(code, text, begin, end):
    """Positions between `begin` and `end` that search `text`, or a variable that is made from it."""
    for pattern in searched(text):
        for match in re.compile(pattern).finditer(code, begin, end):
            yield match.end()
    for match in re.compile(rf"\b{TAINTS}(\w+)\s*[=({{]([^;{{}}]*)").finditer(code, begin, end):
        if re.search(text + r"(?!\.(?:size|empty|length)\()", match.group(2)):
            name = rf"(?<![\w.>]){match.group(1)}\b"
            yield from places_that_search(code, name, match.end(), scope_after(code, match.start()))


def lines_that_search(code):
    return sorted({code.count("\n", 0, place) + 1 for place in places_that_search(code, CALL, 0, len(code))})


def check(root, files, allowed=None):
    allowed = ALLOWED if allowed is None else allowed
    seen = set()
    for path in files:
        if path.parts[0] == "tests" or str(path) in CONVERSIONS:
            continue
        for number in lines_that_search(code_of((root / path).read_text(errors="replace"))):
            seen.add(str(path))
            if str(path) not in allowed:
                yield f"{path}:{number}: error: searches the text of an error: branch on its code, or on a field of its own"
    for path in sorted(set(allowed) - seen):
        yield f"{HERE}:1: error: {path} searches no text of an error: take it off the list"
