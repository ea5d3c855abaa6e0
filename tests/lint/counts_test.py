"""Functions without a caller are found, asserts counted."""
import counts
from planted import PlantedTest
from tree import floors, sources_of


class CountsTest(PlantedTest):
    def test_what_has_no_caller_and_few_asserts_is_found(self):
        found = self.found_with_table(counts.report, {
            "common/base/a.h": "#pragma once\nvoid alone();\nvoid called();\n",
            "common/base/a.cc": '#include "common/base/a.h"\nvoid alone() {}\nvoid called() {}\n',
            "common/net/b.cc": "void f() { called(); DTF_CHECK(true); }\n"})
        self.assertIn("common/base: error: 0.0 asserts per 1000 lines, 8 are the least", found)
        self.assert_found("common/base/a.h:1: error: alone() has no caller", found)
        self.assertFalse(any("called()" in p or p.startswith("common/net:") for p in found), found)
        self.assert_found("failpointNames() has a caller, or is gone", found)

    def test_asserts_are_counted_and_functions_that_no_program_calls_named(self):
        files = {"common/base/a.h": "int used();\nint dead();\nint here();\n",
                 "common/base/a.cc": "int used() {\n  DTF_CHECK(1);\n  return here();\n}\n"
                                     "int dead() { return 1; }\nint here() { return 2; }\n",
                 "common/net/b.cc": "char q = '\"';\nint b = used();\nchar r = '\"';\n", "tests/unit/base/a_test.cc": "dead();\n"}
        with self.tree(files) as root:
            table, sources = floors(root / "common/README.md"), sources_of(root)
            self.assertEqual(list(counts.uncalled(root, sources, table)), ["common/base/a.h: dead()"])
            density = counts.assert_density(root, sources, table)
            self.assertEqual({library: round(each, 1) for library, each in density.items()},
                             {"common/base": 111.1, "common/net": 0.0})
