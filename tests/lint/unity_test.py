"""Equal names in the sources of one target are found."""
import unity
from planted import PlantedTest

BUILD = "a = static_library('a',\n  'one.cc',\n  'two.cc',\n  include_directories: root_inc)\n"


def source(body):
    return f"namespace dtf {{\nnamespace {{\n{body}\n}}\n}}\n"


class UnityTest(PlantedTest):
    def found_in(self, one, two, build=BUILD):
        return self.found(unity.check, {"common/base/meson.build": build, "common/base/one.cc": one, "common/base/two.cc": two})

    def test_a_constant_a_type_or_a_function_of_two_sources_is_found(self):
        for body in ("constexpr int kMost = 5;", "struct Apple { int a; };", "int twice(int a) { return 2 * a; }"):
            self.assert_found("is in an unnamed namespace of common/base/one.cc", self.found_in(source(body), source(body)))

    def test_other_parameters_other_targets_and_named_namespaces_are_accepted(self):
        self.assertEqual(self.found_in(source("int twice(int a) { return a; }"), source("int twice(long a) { return 1; }")), [])
        apart = "static_library('a',\n  'one.cc')\nstatic_library('b',\n  'two.cc')\n"
        body = "constexpr int kMost = 5;"
        self.assertEqual(self.found_in(source(body), source(body), apart), [])
        named = f"namespace a {{\n{body}\n}}\n"
        self.assertEqual(self.found_in(named, named), [])
        member = "struct A{0} {{ int count = 0; }};"
        self.assertEqual(self.found_in(source(member.format(1)), source(member.format(2))), [])


if __name__ == "__main__":
    import unittest
    unittest.main()
