"""scripts/count_tests.py counts a test that skips as one, whatever the exit code was."""
import json
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "scripts"))
import count_tests  # noqa: E402

GTEST = """[ RUN      ] A.Runs
[       OK ] A.Runs (3 ms)
[ RUN      ] A.Skips
../tests/a_test.cc:7: Skipped
no data: run scripts/fetch

[  SKIPPED ] A.Skips (0 ms)
[  PASSED  ] 1 test.
[  SKIPPED ] 1 test, listed below:
[  SKIPPED ] A.Skips
"""
FAILS = """[ RUN      ] A.Fails
../tests/a_test.cc:9: Failure
Expected: 1

[  FAILED  ] A.Fails (3 ms)
[ RUN      ] A.Fails/1
[  FAILED  ] A.Fails/1, where GetParam() = 4 (3 ms)
[  FAILED  ] 2 tests, listed below:
[  FAILED  ] A.Fails
"""


class CountTestsTest(unittest.TestCase):
    def count(self, *tests):
        return count_tests.count("\n".join(json.dumps(test) for test in tests))

    def test_a_gtest_that_exits_with_0_after_a_skip(self):
        self.assertEqual(self.count({"name": "dtf:unit / a", "result": "OK", "stdout": GTEST}),
                         (1, 0, ["a: A.Skips: no data: run scripts/fetch"], []))

    def test_a_script_that_exits_with_77(self):
        self.assertEqual(self.count({"name": "power", "result": "SKIP", "stderr": "SKIPPED: mounting needs root\n"}),
                         (0, 0, ["power: mounting needs root"], []))

    def test_a_script_is_one_test(self):
        self.assertEqual(self.count({"name": "a", "result": "OK", "stdout": "fine\n"}, {"name": "b", "result": "OK"}),
                         (2, 0, [], []))

    def test_failed_cases_and_processes_that_die_without_a_word(self):
        self.assertEqual(self.count({"name": "a", "result": "FAIL", "stdout": FAILS})[:2], (0, 2))
        self.assertEqual(self.count({"name": "a", "result": "TIMEOUT", "stdout": "[ RUN      ] A.Hangs\n"})[:2], (0, 1))
        self.assertEqual(self.count({"name": "a", "result": "FAIL"})[:2], (0, 1))

    def test_what_failed_is_told_with_what_it_said(self):
        self.assertEqual(self.count({"name": "a", "result": "FAIL", "stdout": FAILS})[3],
                         ["a: A.Fails: ../tests/a_test.cc:9: Failure | Expected: 1", "a: A.Fails/1: it said nothing"])
        self.assertEqual(self.count({"name": "a", "result": "TIMEOUT", "stdout": "[ RUN      ] A.Hangs\nat 3\n"})[3],
                         ["a: A.Hangs: at 3"])
        self.assertEqual(self.count({"name": "a", "result": "FAIL", "stdout": "no such file\n"})[3],
                         ["a: FAIL: no such file"])


if __name__ == "__main__":
    unittest.main()
