"""check_tree.py must find what it claims to find: each case plants one mistake in a small tree."""
import contextlib
import io
import pathlib
import tempfile
import unittest

import check_tree

TABLE = """
| floor | library | what | third parties allowed |
|---|---|---|---|
| 0 | `common/base` | errors | std, fmt |
| 1 | `common/net` | sockets | Asio |
| 1 | `common/tensor` | shapes | - |
"""


class CheckTreeTest(unittest.TestCase):
    def problems(self, files):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for name, text in {"common/README.md": TABLE, **files}.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text)
            return check_tree.check_tree(root)

    def test_a_good_tree_passes(self):
        self.assertEqual(self.problems({
            "common/base/a.h": "#pragma once\n",
            "common/net/b.h": '#pragma once\n#include "common/base/a.h"\n',
            "common/net/b.cc": '#include "common/net/b.h"\n',
            "tests/unit/net/b_test.cc": "",
        }), [])

    def test_what_has_no_caller_and_few_asserts_is_found(self):
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
            root = pathlib.Path(folder)
            for name, text in {"common/README.md": TABLE,
                               "common/base/a.h": "#pragma once\nvoid alone();\nvoid called();\n",
                               "common/base/a.cc": '#include "common/base/a.h"\nvoid alone() {}\nvoid called() {}\n',
                               "common/net/b.cc": "void f() { called(); DTF_CHECK(true); }\n"}.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text)
            found = list(check_tree.report(root))
        self.assertIn("common/base: error: 0.0 asserts per 1000 lines, 8 are the least", found)
        self.assertTrue(any(p.startswith("common/base/a.h:1: error: alone() has no caller") for p in found), found)
        self.assertFalse(any("called()" in p or p.startswith("common/net:") for p in found), found)
        self.assertTrue(any("readPart() has a caller, or is gone" in p for p in found), found)

    def test_an_include_that_points_up_is_found(self):
        found = self.problems({"common/base/a.h": '#include "common/net/b.h"\n', "common/net/b.h": ""})
        self.assertTrue(any("common/base/a.h:1: error: common/base (floor 0) includes" in p for p in found), found)

    def test_an_include_of_a_sibling_is_found(self):
        found = self.problems({"common/net/b.h": '#include "common/tensor/s.h"\n', "common/tensor/s.h": ""})
        self.assertTrue(any("common/net/b.h:1: error" in p for p in found), found)

    def test_a_third_party_out_of_place_is_found(self):
        found = self.problems({"common/tensor/s.h": "#include <boost/asio.hpp>\n"})
        self.assertTrue(any("may not use Asio" in p for p in found), found)

    def test_a_header_that_does_not_compile_alone_is_found(self):
        found = self.problems({"common/base/a.h": "#pragma once\nstd::string f();\n"})
        self.assertTrue(any("does not compile alone" in p for p in found), found)

    def test_a_header_of_a_source_is_compiled_alone_too(self):
        found = self.problems({"common/base/a.h": "#pragma once\nstd::string f();\n",
                               "common/base/a.cc": '#include "common/base/a.h"\n', "tests/unit/base/a_test.cc": ""})
        self.assertTrue(any("a.h:1: error: does not compile alone" in p for p in found), found)

    def test_a_header_that_compiled_is_compiled_again_when_what_it_includes_has_changed(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "common/base").mkdir(parents=True)
            files = [pathlib.Path("common/base/a.h"), pathlib.Path("common/base/b.h")]
            (root / files[0]).write_text('#include "common/base/b.h"\nA f();\n')
            for text, problems in (("struct A {};\n", 0), ("struct A {};\n", 0), ("struct B {};\n", 1)):
                (root / files[1]).write_text(text)
                self.assertEqual(len(list(check_tree.check_headers_alone(root, files))), problems, text)

    def test_asserts_are_counted_and_functions_that_no_program_calls_named(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            files = {"common/README.md": TABLE, "common/base/a.h": "int used();\nint dead();\nint here();\n",
                     "common/base/a.cc": "int used() {\n  DTF_CHECK(1);\n  return here();\n}\n"
                                         "int dead() { return 1; }\nint here() { return 2; }\n",
                     "common/net/b.cc": "char q = '\"';\nint b = used();\nchar r = '\"';\n", "tests/unit/base/a_test.cc": "dead();\n"}
            for name, text in files.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text)
            table, sources = check_tree.floors(root / "common/README.md"), check_tree.sources_of(root)
            self.assertEqual(list(check_tree.uncalled(root, sources, table)), ["common/base/a.h: dead()"])
            density = check_tree.assert_density(root, sources, table)
            self.assertEqual({library: round(each, 1) for library, each in density.items()},
                             {"common/base": 111.1, "common/net": 0.0})

    def test_a_unit_without_a_test_is_found(self):
        found = self.problems({"common/base/a.cc": "int a;\n"})
        self.assertTrue(any("has no test" in p for p in found), found)

    def test_a_source_that_hides_its_header_behind_others_is_found(self):
        found = self.problems({"common/base/a.h": "", "common/base/a.cc": '#include <string>\n#include "common/base/a.h"\n',
                               "tests/unit/base/a_test.cc": ""})
        self.assertTrue(any("before its own header" in p for p in found), found)

    def test_what_the_readme_has_readers_type_is_there(self):
        files = {"launcher/options.cc": '    {"up", Verb::kUp,\n', "tests/bench/main.cc": '    {"rpc", "pings", benchRpc},\n',
                 "scripts/demo.sh": ""}
        good = "`dtf-launch up c.yaml`, `dtf-launch` said, `dtf-bench --check rpc`\n```\nscripts/demo.sh  # scripts/gone.sh\n```\n"
        self.assertFalse([p for p in self.problems({**files, "README.md": good}) if p.startswith("README.md")])
        found = self.problems({**files, "README.md": "`dtf-launch run c.yaml`\n`dtf-bench rpcs`\n```\nscripts/gone.sh\n```\n"})
        self.assertEqual([p for p in found if p.startswith("README.md")],
                         ["README.md:1: error: dtf-launch has no verb 'run'", "README.md:2: error: dtf-bench has no table 'rpcs'",
                          "README.md:4: error: scripts/gone.sh is not there"])

    def test_a_long_file_is_found(self):
        found = self.problems({"common/base/a.h": "\n" * 451})
        self.assertTrue(any("451 lines" in p for p in found), found)

    def test_a_long_function_is_found(self):
        table = "const char* kTable =\n" + '    "row"\n' * 80 + '    "end";\n'
        found = self.problems({"common/base/a.h": table + "void f(\n    int a) {\n" + "  a;\n" * 68 + "}\n"})
        self.assertTrue(any("a.h:83: error: a function of 71 lines" in p for p in found), found)
        found = self.problems({"common/base/a.h": table + "void f(\n    int a) {\n" + "  a;\n" * 67 + "}\n"})
        self.assertFalse(any("a function of" in p for p in found), found)


if __name__ == "__main__":
    unittest.main()
