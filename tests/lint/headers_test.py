"""Headers that do not compile alone are found; each header has its turn."""
import pathlib

import headers
from planted import PlantedTest


class HeadersTest(PlantedTest):
    def test_a_header_that_does_not_compile_alone_is_found(self):
        found = self.found(headers.check, {"common/base/a.h": "#pragma once\nstd::string f();\n"}, everything=True)
        self.assert_found("a.h:1: error: does not compile alone", found)

    def test_a_header_of_a_source_is_compiled_alone_too(self):
        files = {"common/base/a.h": "#pragma once\nstd::string f();\n", "common/base/a.cc": '#include "common/base/a.h"\n'}
        self.assert_found("a.h:1: error: does not compile alone", self.found(headers.check, files, everything=True))

    def test_a_header_that_compiled_is_compiled_again_when_what_it_includes_has_changed(self):
        with self.tree({"common/base/a.h": '#include "common/base/b.h"\nA f();\n'}) as root:
            files = [pathlib.Path("common/base/a.h"), pathlib.Path("common/base/b.h")]
            for text, problems in (("struct A {};\n", 0), ("struct A {};\n", 0), ("struct B {};\n", 1)):
                (root / files[1]).write_text(text)
                self.assertEqual(len(list(headers.check_alone(root, files))), problems, text)

    def test_a_source_that_hides_its_header_behind_others_is_found(self):
        files = {"common/base/a.h": "", "common/base/a.cc": '#include <string>\n#include "common/base/a.h"\n'}
        self.assert_found("before its own header", self.found(headers.check_own_header_first, files))

    def test_each_header_without_a_source_has_its_turn(self):
        files = {f"common/base/h{i}.h": "" for i in range(40)} | {"common/base/h0.cc": ""}
        with self.tree(files) as root:
            paths = [pathlib.Path(name) for name in files if name.endswith(".h")]
            seen, turns = set(), []
            for i in range(200):  # contents stand for commits here
                (root / "common/base/h1.h").write_text(f"// {i}\n")
                turns.append(headers.selected(root, paths, False))
                seen.update(turns[-1])
            self.assertEqual(seen, set(paths[1:]))  # h0 is proven by its source
            self.assertLess(max(map(len, turns)), 20)
            self.assertEqual(headers.selected(root, paths, True), paths)

    def test_what_the_newest_commits_and_the_working_tree_touched_is_compiled_at_once(self):
        names = [f"common/base/h{i}.h" for i in range(40)]
        paths = [pathlib.Path(name) for name in names]
        with self.tree({name: "" for name in names}) as root:
            self.commit(root, "all of them")
            self.assertEqual(headers.selected(root, paths, False), paths)
            for i in range(headers.COMMITS_NEW):
                self.commit(root, f"{i}")
            self.assertLess(len(headers.selected(root, paths, False)), 20)
            (root / names[0]).write_text("// changed\n")
            (root / names[1]).write_text("// changed\n")
            self.commit(root, "newest")
            (root / names[2]).write_text("// changed\n")
            (root / "common/base/new.h").write_text("")
            new = {pathlib.Path(name) for name in (*names[:3], "common/base/new.h")}
            self.assertLessEqual(new, set(headers.selected(root, [*paths, pathlib.Path("common/base/new.h")], False)))
