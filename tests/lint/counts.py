"""A library has 8 asserts per 1000 lines, and no function that nothing calls, but for a list of them."""
import collections
import re

from tree import library_of

ASSERTS_MIN = 8.0  # per 1000 lines of a library
NO_ASSERTS = {"gpu"}  # a plug-in must not end the program: its checks are errors over the boundary
INSTALLED_HEADERS = "common/api/dtf"  # for the programs of others
EXAMPLES = "common/api/examples"  # of such programs
# Functions that no program calls, with their purpose.
UNCALLED_ALLOWED = {
    "gpu/cuda_error.h: cudnnGetErrorString()": "cuDNN's own, called there",
    "common/base/failpoint.h: failpointNames()": "tests arm each of them",
    "common/net/buffer_pool.h: freshCount()": "tests see that buffers are used again",
    "common/net/buffer_pool.h: retainedBytes()": "tests see the bound",
    "common/net/tls_session.h: bufferBytes()": "tests see the bound",
    "common/net/tls_session.h: keyUpdates()": "tests see that keys are renewed",
    "common/net/tls_session.h: setRecordsPerKey()": "tests need not send 2^24 records",
    "common/exchange/local_exchange_client.h: loseWorker()": "a fault of tests",
    "common/optimizer/parameter_store.h: arenasAllocated()": "tests see that updates allocate nothing",
}


def assert_density(root, files, table):
    """Asserts (DTF_CHECK, loops' assertInLoop) per 1000 lines of each library."""
    counts = {}
    for path in files:
        library = library_of(path, table)
        if library is None or library in NO_ASSERTS or path.is_relative_to(INSTALLED_HEADERS) or path.is_relative_to(EXAMPLES):
            continue
        text = (root / path).read_text(errors="replace")
        lines, asserts = counts.get(library, (0, 0))
        counts[library] = (lines + text.count("\n"), asserts + len(re.findall(r"\bDTF_CHECK|\bassertInLoop\(", text)))
    return {library: 1000 * asserts / lines for library, (lines, asserts) in sorted(counts.items()) if lines}


# A declaration at the beginning of a line; overrides are called through the base.
DECLARED = re.compile(r"^[ \t]*(?:static |virtual |inline |constexpr |explicit )*[\w:<>,&*\s]+?[ &*>]([a-z]\w*)\(([^;{]*)([;{])", re.M)


def uncalled(root, files, table):
    """Functions of headers with names that no other file of a program contains, and their own .cc only as a definition."""
    words = {}
    for path in files:
        if library_of(path, table) is not None:
            text = re.sub(r"//[^\n]*|'(?:\\.|[^'\\])'|\"(?:\\.|[^\"\\])*\"", "", (root / path).read_text(errors="replace"))
            words[path] = (text, collections.Counter(re.findall(r"\b[A-Za-z_]\w*\b", text)))
    total = collections.Counter()
    for _, counts in words.values():
        total.update(counts)
    for path, (text, counts) in words.items():
        if path.suffix != ".h" or path.is_relative_to(INSTALLED_HEADERS):
            continue
        _, own = words.get(path.with_suffix(".cc"), ("", collections.Counter()))
        for name, tail, end in DECLARED.findall(text):
            inside = counts[name] + own[name]
            if total[name] == inside <= (2 if own[name] and end == ";" else 1) and not tail.rstrip().endswith("override"):
                yield f"{path}: {name}()"


def report(root, files, table, allowed=UNCALLED_ALLOWED):
    """Prints the counts; yields the problems in them."""
    density = assert_density(root, files, table)
    print("asserts per 1000 lines: " + ", ".join(f"{library} {each:.1f}" for library, each in density.items()))
    nobody_calls = sorted(set(uncalled(root, files, table)))
    print(f"{len(nobody_calls)} functions that no program calls: " + ", ".join(nobody_calls))
    for library, each in density.items():
        if each < ASSERTS_MIN:
            yield f"{library}: error: {each:.1f} asserts per 1000 lines, {ASSERTS_MIN:g} are the least"
    for function in nobody_calls:
        if function not in allowed:
            yield f"{function.replace(': ', ':1: error: ')} has no caller in any program: remove it, or say what it is for"
    for function in sorted(set(allowed) - set(nobody_calls)):
        yield f"tests/lint/counts.py:1: error: {function} has a caller, or is gone: take it off the list"
