"""The choices of the test command: targets of suites, files for clang-tidy, rows of the tables of time."""
import importlib.util
import pathlib
import unittest

SCRIPTS = pathlib.Path(__file__).parents[2] / "scripts"


def script(name):
    spec = importlib.util.spec_from_file_location(name.replace("-", "_"), SCRIPTS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class SuiteTargetsTest(unittest.TestCase):
    TARGETS = [{"id": "a@exe", "filename": ["/b/tests/a"]}, {"id": "psd@exe", "filename": ["/b/daemons/psd"]},
               {"id": "other@exe", "filename": ["/b/tests/other"]}]
    TESTS = [{"cmd": ["/b/tests/a", "--quick"], "depends": ["psd@exe"], "suite": ["dtf:e2e"]},
             {"cmd": ["/usr/bin/python3", "/b/tests/other"], "depends": [], "suite": ["dtf:e2e_more"]}]

    def test_a_suite_needs_what_its_tests_start_and_depend_on(self):
        targets_of = script("suite-targets").targets_of
        self.assertEqual(targets_of(self.TESTS, self.TARGETS, {"e2e"}), ["/b/tests/a", "/b/daemons/psd"])
        self.assertEqual(targets_of(self.TESTS, self.TARGETS, {"e2e_more"}), ["/b/tests/other"])

    def test_a_suite_without_tests_is_named(self):
        self.assertEqual(script("suite-targets").without_tests(self.TESTS, {"e2e", "unti"}), ["unti"])


class TidyFilesTest(unittest.TestCase):
    def test_comments_and_white_space_are_no_code(self):
        code_of = script("tidy-files").code_of
        self.assertEqual(code_of("int a;  // one\nint b;\n"), code_of("int a;\n// two\n  int\nb;\n"))
        self.assertNotEqual(code_of("int a;\n"), code_of("int b;\n"))
        self.assertNotEqual(code_of('a = "http://x";\n'), code_of('a = "http://y";\n'))

    def test_as_many_commits_as_shares_check_every_file_once(self):
        tidy = script("tidy-files")
        names = [f"common/base/f{i}.cc" for i in range(1600)]
        shares = [{name for name in names if tidy.is_in_share(name, share)} for share in range(tidy.SHARES)]
        self.assertEqual(sum(map(len, shares)), len(names))
        self.assertTrue(all(5 <= len(share) <= 60 for share in shares))


class WhereTimeGoesTest(unittest.TestCase):
    def test_a_header_counts_once_with_all_that_it_includes(self):
        time = script("where-time-goes")
        source = [("/usr/include/boost/a.hpp", 0, 90), ("/usr/include/c++/12/map", 10, 20), ("../common/b.h", 100, 50),
                  ("/usr/include/fmt/format.h", 110, 30)]
        events = [{"name": "Source", "ts": begin, "dur": duration, "args": {"detail": path}} for path, begin, duration in source]
        kinds, headers, counts = {}, time.collections.Counter(), time.collections.Counter()
        time.add_trace(events, kinds, headers, counts)
        self.assertEqual(dict(counts), {"boost/a.hpp": 1, "fmt/format.h": 1})
        self.assertAlmostEqual(headers["boost/a.hpp"], 90e-6)

    def test_objects_belong_to_the_folder_of_their_library(self):
        library_of = script("where-time-goes").library_of
        self.assertEqual(library_of("common/wire/libwire_control.a.p/meson-generated_wire_control-unity0.cpp.o"), "common/wire")
        self.assertEqual(library_of("daemons/psd/psd.p/main.cc.o"), "daemons/psd")


if __name__ == "__main__":
    unittest.main()
