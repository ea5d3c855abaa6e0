#!/usr/bin/env python3
"""Plants the mistakes of a mutations.toml in copies of the sources. Tests beside it must find each.

mutate.py files   SPEC            the sources that some mutation changes, a line each
mutate.py library SPEC FOLDER     all sources of the library in FOLDER, a line each
mutate.py header  SPEC            the C++ header that names the mutations
mutate.py source  SPEC FILE       FILE with all its mutations, each behind `mutant == Mutant::kName`

A mutation whose text is not in the code exactly once is an error: the code has changed, and the
mutation must follow.
"""
import pathlib
import re
import sys
import tomllib

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Mistake(Exception):
    """A mutation that does not fit the code, with its place and the remedy."""


def load(spec):
    """Returns {name: [edit]}; the first edit of each describes the mistake."""
    mutations = tomllib.loads(pathlib.Path(spec).read_text())
    for name, edits in mutations.items():
        if not re.fullmatch(r"[A-Z]\w+", name) or "what" not in edits[0]:
            raise Mistake(f"{spec}: [[{name}]]: a mutation has a name like FenceOpen, and `what` it does")
        for edit in edits:
            unknown = set(edit) - {"what", "file", "find", "replace"}
            if unknown or not {"file", "find", "replace"} <= set(edit):
                raise Mistake(f"{spec}: [[{name}]]: an edit has `file`, `find` and `replace`, and nothing else")
    return mutations


def files_of(mutations):
    return sorted({edit["file"] for edits in mutations.values() for edit in edits})


def guarded(name, found, replacement):
    """Both texts with the choice between them, statements or expressions."""
    chosen = f"::dtf::sim::mutant == ::dtf::sim::Mutant::k{name}"
    if found.rstrip().endswith((";", "}")):
        return f"{{ if ({chosen}) {{ {replacement} }} else {{ {found} }} }}"
    return f"({chosen} ? ({replacement}) : ({found}))"


def place(text, spec, name, edit):
    """(begin, end) of the edit's text; how it is wrapped doesn't matter."""
    found = edit["find"] if "«" in edit["find"] else f"«{edit['find']}»"
    before, rest = found.split("«")
    parts = [r"\s+".join(re.escape(word) for word in part.split()) for part in (before, *rest.split("»"))]
    places = [match.span("it") for match in re.finditer(r"{}\s*(?P<it>{})\s*{}".format(*parts), text)]
    if len(places) != 1:
        raise Mistake(f"{spec}: [[{name}]]: its text is {len(places)} times in {edit['file']}, and must be there once:\n"
                      f"    {edit['find'].strip()}\nWrite `find` and `replace` anew for the code as it is now")
    return places[0]


def mutated(text, spec, file, mutations):
    changes = []
    for name, edits in mutations.items():
        for edit in edits:
            if edit["file"] == file:
                begin, end = place(text, spec, name, edit)
                changes.append((begin, end, name, guarded(name, text[begin:end], edit["replace"].strip())))
    changes.sort()
    for (_, end, name, _), (begin, _, other, _) in zip(changes, changes[1:]):
        if begin < end:
            raise Mistake(f"{spec}: {name} and {other} change the same place of {file}: give one of them less context")
    for begin, end, _, change in reversed(changes):
        text = text[:begin] + change + text[end:]
    folder = "/".join(pathlib.Path(spec).resolve().parts[-3:-1])
    return f'#include "{folder}/mutants.h"\n#line 1 "{file}"\n{text}'


def header(mutations):
    names = "".join(f"  k{name},  // {edits[0]['what']}\n" for name, edits in mutations.items())
    rows = "".join(f'    {{Mutant::k{name}, "{name}"}},\n' for name in mutations)
    return ("#pragma once\n\n// Made by tests/sim/mutate.py.\n\nnamespace dtf::sim {\n\n"
            f"enum class Mutant {{\n  kNone,\n{names}}};\n\n"
            "inline Mutant mutant = Mutant::kNone;  // set by one thread, before anything runs\n\n"
            f"struct NamedMutant {{\n  Mutant mutant;\n  const char* name;\n}};\n\n"
            f"inline constexpr NamedMutant kMutants[] = {{\n{rows}}};\n\n}}  // namespace dtf::sim\n")


def main(command, spec, *rest):
    mutations = load(spec)
    if command == "files":
        return "".join(file + "\n" for file in files_of(mutations))
    if command == "library":
        others = [build.parent for build in (ROOT / rest[0]).glob("*/meson.build")]  # libraries of their own
        sources = sorted((path for path in (ROOT / rest[0]).rglob("*.cc")
                          if not path.name.endswith("main.cc") and not any(path.is_relative_to(other) for other in others)),
                         key=lambda path: (path.parent, path.name))
        return "".join(f"{path.relative_to(ROOT)}\n" for path in sources)
    if command == "header":
        return header(mutations)
    if command == "source":
        return mutated((ROOT / rest[0]).read_text(), spec, rest[0], mutations)
    raise Mistake(__doc__)


if __name__ == "__main__":
    try:
        sys.stdout.write(main(*sys.argv[1:]))
    except Mistake as mistake:
        sys.exit(f"error: {mistake}")
