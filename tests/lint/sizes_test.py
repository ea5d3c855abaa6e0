"""Long files and long functions are found."""
import sizes
from planted import PlantedTest


class SizesTest(PlantedTest):
    def test_a_long_file_is_found(self):
        self.assert_found("451 lines", self.found(sizes.check, {"common/base/a.h": "\n" * 451}))

    def test_a_long_function_is_found(self):
        table = "const char* kTable =\n" + '    "row"\n' * 80 + '    "end";\n'
        for lines, expected in ((68, ["a function of 71 lines"]), (67, [])):
            found = self.found(sizes.check, {"common/base/a.h": table + "void f(\n    int a) {\n" + "  a;\n" * lines + "}\n"})
            self.assertEqual(len(found), len(expected), found)
            for text in expected:
                self.assert_found(f"a.h:83: error: {text}", found)
