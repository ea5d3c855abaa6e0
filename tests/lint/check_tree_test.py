"""Tests that the checks find mistakes: runs every *_test.py beside it; each case plants one mistake."""
import pathlib
import sys
import unittest

import check_tree
from planted import PlantedTest


class CheckTreeTest(PlantedTest):
    def problems(self, files):
        """Without problems of the lists, which name files of dtf."""
        with self.tree(files) as root:
            return [each for each in check_tree.check_tree(root) if not each.startswith("tests/lint/")]

    def test_a_good_tree_passes(self):
        self.assertEqual(self.problems({
            "common/base/a.h": "#pragma once\n",
            "common/net/b.h": '#pragma once\n#include "common/base/a.h"\n',
            "common/net/b.cc": '#include "common/net/b.h"\n',
            "tests/unit/net/b_test.cc": "",
        }), [])

    def test_every_check_runs(self):
        found = self.problems({
            "common/base/a.h": '#include "common/net/b.h"\nstd::string f();\n' + "\n" * 450, "common/net/b.h": "",
            "common/base/c.cc": "// Whose text is asked for what was said.\nbool f(Error e) { return e.message() == text; }\n",
            "launcher/verbs.cc": "", "meson.build": "chapters = [\n  'README.md',\n]\n", "tests/bench/main.cc": "", "README.md": "`scripts/gone.sh`\n", "common/meson.build": "['a.cc', 'b.cc']\n",
            "daemons/a.cc": '#include "daemons/psd/b.h"\n', "daemons/psd/b.h": "",
            "common/net/d.h": "class D {\n" + "".join(f"  int m{i}_;\n" for i in range(21)) + "};\n",
        })
        for text in ("includes common/net/b.h", "does not compile alone", "uses std::string", "has no test", "lines; a file", "searches",
                     "is not there", "one source a line", "shared code is directly", "21 data members",
                     "2 times 'said/told/asked' in 8 words"):
            self.assert_found(text, found)

    def test_a_tree_without_a_table_is_no_tree(self):
        with self.tree({"common/README.md": ""}) as root:
            self.assertEqual(check_tree.check_tree(root), ["common/README.md:1: error: no table of floors found"])


if __name__ == "__main__":
    here = str(pathlib.Path(__file__).parent)
    unittest.main(module=None, argv=[sys.argv[0], "discover", "-s", here, "-p", "*_test.py", *sys.argv[1:]])
