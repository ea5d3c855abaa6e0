"""A class in a header has at most 30 public methods, 40 in all, and 20 data members. universal-ctags counts them.

Methods: overloads count each; constructors, destructors and operators don't. Members: static ones don't.
A struct without methods (but constructors, operators and static functions) may have any number of members: its 25
fields are 25 columns of one table, which nobody has to keep consistent. A class with 25 members is state.

LISTED holds the classes that are above a limit today, with their numbers. The numbers only fall: one that is too high
is an error, too.
"""
import collections

from tree import tags_of

PUBLIC_MAX = 30
METHODS_MAX = 40
MEMBERS_MAX = 20
# Annotations that would look like functions.
ANNOTATIONS = ("GUARDED_BY", "PT_GUARDED_BY", "ACQUIRE", "TRY_ACQUIRE", "RELEASE", "REQUIRES", "EXCLUDES", "CAPABILITY", "TSA")
HERE = "tests/lint/classes.py"
TOPS = ("common", "daemons", "launcher", "gpu")

# class: its numbers above a limit
LISTED = {
    "dtf::Json": {"public methods": 48, "methods": 57},  # of a value, three for each of its types
    "dtf::gpu::HostCopies": {"data members": 21},
    "dtf::graph::Builder": {"public methods": 97, "methods": 98},
    "dtf::launcher::Agent": {"data members": 26},
    "dtf::launcher::AgentLink": {"methods": 45, "data members": 28},
    "dtf::launcher::ModelFetch": {"data members": 24},
    "dtf::launcher::TaskMonitor": {"public methods": 36, "methods": 60},
    "dtf::launcher::UnitFollower": {"data members": 30},
    "dtf::host::PeerNetwork": {"data members": 21},
    "dtf::host::PsServer": {"data members": 31},
    "dtf::replication::AsyncCoordinator": {"methods": 50},
    "dtf::replication::SyncCoordinator": {"methods": 52},
    "dtf::train::DeviceArena": {"data members": 28},
    "dtf::train::Supervisor": {"data members": 23},
    "dtf::train::TrainingLoop": {"data members": 37},
    "dtf::v1::Graph": {"public methods": 41, "methods": 46},
    "dtf::wire::PsDataLink": {"data members": 27},
}


def tags(root, headers):
    annotations = [word for name in ANNOTATIONS for word in ("-D", f"DTF_{name}(x)=")]
    return tags_of(root, headers, "pfcsm", "--fields=+{access}{scope}{kind}{line}", "--fields-C++=+{properties}", *annotations)


def count_classes(root, files):
    """{class: {"file", "line", "is_struct", "public", "methods", "members"}}"""
    classes = {}
    members = collections.defaultdict(collections.Counter)
    headers = [path for path in files if path.suffix == ".h" and path.parts[0] in TOPS]
    for tag in tags(root, headers) if headers else ():
        name, kind, scope = tag["name"], tag["kind"], tag.get("scope", "")
        if kind in ("class", "struct"):
            full = f"{scope}::{name}" if scope else name
            classes[full] = {"file": tag["path"], "line": tag["line"], "is_struct": kind == "struct"}
        elif tag.get("scopeKind") in ("class", "struct"):
            is_static = "static" in tag.get("properties", "")
            if kind == "member":
                members[scope]["members"] += not is_static
            elif name != scope.split("::")[-1] and not name.startswith(("~", "operator")):
                members[scope]["methods"] += 1
                members[scope]["public"] += tag.get("access") == "public"
                members[scope]["acting"] += not is_static
    for name, each in classes.items():
        each.update({what: members[name][what] for what in ("public", "methods", "members", "acting")})
    return classes


def above(each):
    """{limit: number} of the limits that a class exceeds."""
    found = {}
    if each["public"] > PUBLIC_MAX:
        found["public methods"] = each["public"]
    if each["methods"] > METHODS_MAX:
        found["methods"] = each["methods"]
    if each["members"] > MEMBERS_MAX and not (each["is_struct"] and not each["acting"]):
        found["data members"] = each["members"]
    return found


LIMITS = {"public methods": PUBLIC_MAX, "methods": METHODS_MAX, "data members": MEMBERS_MAX}
ADVICE = {"public methods": "split the interface", "methods": "move a concern into a class of its own",
          "data members": "a class with so many is state that nobody can check; a struct without methods is data, and may have more"}


def check(root, files, listed=None):
    listed = LISTED if listed is None else listed
    counted = count_classes(root, files)
    for name, each in sorted(counted.items()):
        for what, number in above(each).items():
            most = max(LIMITS[what], listed.get(name, {}).get(what, 0))
            if number > most:
                yield f"{each['file']}:{each['line']}: error: {name} has {number} {what}, {most} at most: {ADVICE[what]}"
    for name, numbers in sorted(listed.items()):
        today = above(counted[name]) if name in counted else {}
        for what, number in numbers.items():
            if what not in today:
                yield f"{HERE}:1: error: {name} is within the limit of {what} now, or gone: take it off the list"
            elif today[what] < number:
                yield f"{HERE}:1: error: {name} has {today[what]} {what}: lower the number in the list from {number}"
