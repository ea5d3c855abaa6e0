"""Each header includes the headers that declare the names it uses: dtf's types and macros, std's and third parties' names.

The check reads headers instead of compiling them, so all of them take a second. It accepts:
- an include through other headers of dtf, but not through headers of std or of third parties (but for HANDED_ON);
- a forward declaration in place of an include;
- any of the headers that define a type of this name, whatever its namespace.
It misses functions of dtf, and headers with correct includes but wrong code: headers.py compiles.
"""
import re

from tree import Closures, code_of, tags_of

# Names of std by the header that must be included for them.
STD = {
    "algorithm": "all_of any_of clamp copy copy_if copy_n count count_if equal fill fill_n find find_if lower_bound max min "
                 "minmax none_of remove_if replace reverse rotate sort stable_sort transform unique upper_bound",
    "array": "array", "atomic": "atomic memory_order_acquire memory_order_relaxed memory_order_release",
    "bit": "bit_cast bit_ceil bit_width countr_zero has_single_bit popcount",
    "charconv": "from_chars to_chars", "chrono": "chrono chrono_literals",
    "condition_variable": "condition_variable cv_status", "deque": "deque", "exception": "current_exception exception exception_ptr",
    "filesystem": "filesystem", "fstream": "fstream ifstream ofstream", "functional": "function",
    "future": "async future packaged_task promise shared_future", "initializer_list": "initializer_list",
    "latch": "latch", "limits": "numeric_limits", "list": "list", "map": "map multimap",
    "memory": "enable_shared_from_this make_shared make_unique shared_ptr unique_ptr weak_ptr",
    "mutex": "call_once lock_guard mutex once_flag recursive_mutex scoped_lock unique_lock",
    "numeric": "accumulate iota", "optional": "make_optional nullopt nullopt_t optional", "queue": "priority_queue queue",
    "random": "mt19937 mt19937_64 uniform_int_distribution", "ranges": "views", "regex": "regex smatch",
    "set": "multiset set", "span": "span", "sstream": "istringstream ostringstream stringstream",
    "stdexcept": "invalid_argument logic_error out_of_range runtime_error", "string": "getline stod stoi stoul stoull string to_string",
    "string_view": "string_view", "system_error": "errc error_code system_error", "thread": "jthread this_thread thread",
    "tuple": "tie tuple", "type_traits": "conditional_t enable_if_t invoke_result_t is_same_v remove_cvref_t",
    "unordered_map": "unordered_map unordered_multimap", "unordered_set": "unordered_set",
    "utility": "exchange forward integer_sequence move pair swap", "variant": "get_if holds_alternative monostate variant visit",
    "vector": "vector",
}
# Headers that others include by the standard, or in every library: those suffice, too.
HANDED_ON = {
    "string_view": {"string", "filesystem"}, "initializer_list": {"vector", "string", "map", "set", "deque", "list"},
    "utility": {"map", "tuple", "variant", "optional", "memory", "algorithm", "vector", "string", "functional", "set", "array"},
    "type_traits": {"utility", "functional", "variant", "optional", "tuple", "memory", "atomic", "span"},
    "exception": {"stdexcept", "future", "memory", "new"}, "system_error": {"charconv", "filesystem", "future", "mutex"},
    "string": {"filesystem", "sstream", "regex", "stdexcept", "fstream"}, "chrono": {"thread", "condition_variable", "future", "mutex"},
    "mutex": {"condition_variable", "future"}, "thread": {"future"},
    "atomic": {"memory"}, "algorithm": {"functional", "ranges"}, "queue": {"stack"},
}
# (spelling, includes that suffice, their name in the message)
SPELLINGS = [
    (r"\bu?int(?:8|16|32|64)_t\b", r"cstdint|stdint\.h|string|chrono|memory|.*\.capnp\.h|kj/.*", "<cstdint>"),
    (r"\bkj::", r"(kj|capnp)/.*|.*\.capnp\.h", "a header of kj"),
    (r"\bcapnp::", r"capnp/.*|.*\.capnp\.h", "a header of capnp"),
    (r"\bboost::asio", r"boost/asio.*", "a header of Asio"),
    (r"\bnlohmann::", r"nlohmann/.*", "a header of nlohmann-json"),
    (r"\bfmt::", r"(fmt|spdlog)/.*", "a header of fmt"),
    (r"\bspdlog::", r"spdlog/.*", "a header of spdlog"),
    (r"\bYAML::", r"yaml-cpp/.*", "a header of yaml-cpp"),
    (r"(?<![\w:])::testing::|\b(?:EXPECT|ASSERT)_\w+\(", r"(gtest|gmock)/.*", "<gtest/gtest.h>"),
]
DECLARES = {name: {header} | HANDED_ON.get(header, set()) for header, names in STD.items() for name in names.split()}
TYPE = r"[A-Z]\w*[a-z]\w*"
# Scopes with names that are not searched by themselves.
FOREIGN = r"[A-Z]|^(std|kj|capnp|boost|nlohmann|fmt|spdlog|testing)::"


def definitions(root, headers):
    """{name: headers that define it}, of types and macros."""
    found = {}
    for tag in tags_of(root, headers, "csgutd"):
        is_macro = tag["kind"] == "macro" and tag["name"].startswith("DTF_")
        if is_macro or tag["kind"] != "macro" and re.fullmatch(TYPE, tag["name"]):
            found.setdefault(tag["name"], set()).add(tag["path"])
    return found


def missing(code, closure, defined, code_by_path):
    """(name, header) of each name that a header uses without an include of its declaration."""
    for name in sorted(set(re.findall(r"\bstd::([a-z_0-9]+)", code))):
        if name in DECLARES and not DECLARES[name] & closure:
            yield f"std::{name}", f"<{min(header for header in STD if name in STD[header].split())}>"
    for pattern, include, header in SPELLINGS:
        match = re.search(pattern, code)
        if not match or any(re.fullmatch(include, each) for each in closure):
            continue
        forward = f"namespace {match.group(0).removesuffix('::')} {{"
        if not any(forward in code_by_path[each] for each in closure if each in code_by_path):
            yield match.group(0), header
    # A name behind a type's, such as Type::Builder, is declared where that type is.
    words = re.findall(rf"((?:\b\w+::)*)(?<!>::)\b({TYPE}|DTF_[A-Z_]+)\b", code)
    used = {name for scopes, name in words if not re.search(FOREIGN, scopes)}
    for name in sorted(used & set(defined)):
        if defined[name] & closure:
            continue
        forward = re.compile(rf"\b(?:class|struct|enum|typename|auto|using|namespace|define)\s+{name}\b")
        if not any(forward.search(code_by_path[each]) for each in closure if each in code_by_path):
            yield name, min(defined[name])


def check(root, files):
    headers = [path for path in files if path.suffix == ".h"]
    if not headers:
        return
    code_by_path = {str(path): code_of((root / path).read_text(errors="replace")) for path in headers}
    defined, closures = definitions(root, headers), Closures(root)
    for path in headers:
        for name, declared in missing(code_by_path[str(path)], closures.of(path), defined, code_by_path):
            yield f"{path}:1: error: uses {name} and doesn't include {declared}"
