"""Code that writes to a terminal by itself is found."""
import sinks
from planted import PlantedTest


class SinksTest(PlantedTest):
    def lines(self, code, name="common/base/a.cc"):
        return [int(each.split(":")[1]) for each in self.found(sinks.check, {name: code}, {})]

    def test_each_way_out_is_found(self):
        for code in ('std::fprintf(stderr, "%s", name);', "std::cout << name;", "std::cerr << name;", 'fputs(name, stderr);',
                     "std::fwrite(text.data(), 1, text.size(), stdout);", "::write(STDERR_FILENO, a, b);", "::write(2, a, b);",
                     'printf("%s", name);', 'perror("open");'):
            self.assertEqual(self.lines(f"void f() {{\n  {code}\n}}\n"), [2], code)

    def test_what_goes_elsewhere_is_none(self):
        for code in ("print(text);", "::write(fd, a, b);", "log::info(\"{}\", name);", "// std::cout << x", "std::snprintf(a, 3, b);",
                     "fmt::format(\"printf(\");"):
            self.assertEqual(self.lines(f"void f() {{\n  {code}\n}}\n"), [], code)

    def test_examples_and_tests_may(self):
        for name in ("common/api/examples/a.cc", "tests/unit/a.cc"):
            self.assertEqual(self.lines("std::cout << 1;\n", name), [])

    def test_a_sink_makes_it_harmless(self):
        listed = {"common/base/print.cc": "printableLines()"}
        self.assertEqual(self.found(sinks.check, {"common/base/print.cc": "f(printableLines(text));\n"}, listed), [])
        self.assert_found("without printableLines()",
                          self.found(sinks.check, {"common/base/print.cc": "std::fputs(text, stdout);\n"}, listed))
        self.assert_found("take it off the list", self.found(sinks.check, {}, listed))
