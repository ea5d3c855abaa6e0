"""Sources that share a line, long comments and long subjects are found."""
import contextlib
import io
import pathlib

import layout
import tree
from planted import PlantedTest


class LayoutTest(PlantedTest):
    def problems(self, check, files):
        with self.tree(files) as root:
            return list(check(root, layout.texts_of(root)))

    def test_two_sources_in_a_line_are_found(self):
        files = {"common/meson.build": "lib = library('x.y',\n  'a.cc',\n  'b.cc', 'c.cu',\n  'd.cc', dependencies: [d])  # 'e.cc'\n"}
        self.assertEqual(self.problems(layout.check_meson, files),
                         ["common/meson.build:3: error: 2 sources in a line: one source a line"])

    def test_long_comments_are_found_in_every_language(self):
        long = "a word " * 14  # 98 columns
        for name, mark in (("common/a.h", "//"), ("gpu/a.cu", "  //"), ("common/a.capnp", "#"), ("scripts/a.sh", "#"),
                           ("tests/a.py", "    #"), ("meson.build", "#"), ("common/a.cc", "/*\n")):
            found = self.problems(layout.check_comments, {name: f"{mark} {long} too long\n"})
            self.assert_found("100 at most", found)
            self.assertEqual(len(found), 1, name)

    def test_long_code_and_words_that_no_line_can_wrap_are_none(self):
        long = "x" * 120
        files = {"common/a.h": f"int {long};  // why\n// {long}\n", "tests/a.py": f"a = '# {long}'\n"}
        self.assertEqual(self.problems(layout.check_comments, files), [])

    def test_a_long_subject_is_found_of_commits_since_the_base(self):
        with self.tree({}) as root:
            self.commit(root, "h" * 80)
            base = self.commit(root, "base: " + "b" * 80)
            self.commit(root, "a: " + "x" * 69)
            self.assertEqual(list(layout.check_subjects(root, base)), [])
            self.commit(root, "a: " + "x" * 70)
            found = list(layout.check_subjects(root, base))
            self.assertEqual(len(found), 1)
            self.assert_found("a subject of 73 characters, 72 at most: a: xxx", found)

    def test_without_history_subjects_are_left_out_and_that_is_printed(self):
        with self.tree({}) as root:
            for expected in ("there is no git history here", "doesn't reach back to 06bfe64e"):
                printed = io.StringIO()
                with contextlib.redirect_stdout(printed):
                    self.assertEqual(list(layout.check_subjects(root)), [])
                self.assertIn(expected, printed.getvalue())
                self.commit(root, "s" * 80)
            self.assertFalse(tree.has_history(pathlib.Path(root) / "common"))
