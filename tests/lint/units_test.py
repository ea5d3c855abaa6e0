"""Units without a test are found, excused units counted."""
import pathlib

import units
from planted import PlantedTest
from tree import floors

FILES = {"common/base/a.cc": "int a;\n", "common/base/b.cc": "int b;\n"}
BOTH = ((r"common/base/(a|b)\.cc", "tests/unit/base/c_test.cc"),)


class UnitsTest(PlantedTest):
    def excuses(self, tested_in, excused, without_reason):
        with self.tree(FILES) as root:
            table = floors(root / "common/README.md")
            return list(units.check_excuses([pathlib.Path(name) for name in FILES], table, tested_in, excused, without_reason))

    def test_a_unit_without_a_test_is_found(self):
        self.assert_found("common/base/a.cc:1: error: has no test: tests/unit/base/a_test.cc", self.found_with_table(units.check, FILES))

    def test_a_unit_for_each_instruction_set_is_tested_through_the_one_that_chooses(self):
        unit = {"common/base/a_isa.cc": "int a;\n"}
        self.assert_found("tests/unit/base/a_test.cc is missing", self.found_with_table(units.check, unit))
        for test in ("a_test.cc", "a_isa_test.cc"):
            self.assertEqual(self.found_with_table(units.check, {**unit, f"tests/unit/base/{test}": ""}), [])

    def test_an_example_is_run_by_a_test_of_its_name(self):
        example = {"common/base/examples/sum.cc": "int a;\n"}
        self.assertEqual(self.found_with_table(units.check, example), [])
        self.assert_found("sum.cc:1: error: no test in tests/e2e runs it", self.found_with_table(units.check_examples, example))
        for test, call in (("sums_test.cc", 'run({"sum", "1"});'), ("sums_test.py", 'run(path / "build/sum")')):
            files = {**example, f"tests/e2e/{test}": call}
            self.assertEqual(self.found_with_table(units.check_examples, files), [])

    def test_a_unit_may_be_tested_elsewhere_by_a_test_that_is_there(self):
        self.assert_found("c_test.cc is missing", self.found_with_table(units.check, FILES, tested_in=BOTH))
        files = {**FILES, "tests/unit/base/c_test.cc": ""}
        self.assertEqual(self.found_with_table(units.check, files, tested_in=BOTH), [])

    def test_excused_units_are_counted_as_files_and_only_get_fewer(self):
        with_reason = ((*BOTH[0], "two halves of one class"),)
        self.assertEqual(self.excuses(with_reason, 2, 0), [])
        self.assert_found("2 units are tested under another name, 1 at most", self.excuses(with_reason, 1, 0))
        self.assert_found("lower EXCUSED to 2", self.excuses(with_reason, 3, 0))

    def test_entries_without_a_reason_only_get_fewer(self):
        self.assert_found("1 entries have no reason, 0 at most", self.excuses(BOTH, 2, 0))
        self.assert_found("lower WITHOUT_REASON to 1", self.excuses(BOTH, 2, 2))
        self.assert_found("give each entry its reason", self.excuses(BOTH, 2, 1))

    def test_an_entry_that_matches_nothing_comes_off_the_list(self):
        self.assert_found("gone.cc matches no unit", self.excuses((*BOTH, ("gone.cc", "x", "y")), 2, 1))
