"""Code that searches the text of an error is found."""
import texts
from planted import PlantedTest


class TextsTest(PlantedTest):
    def lines(self, code):
        found = self.found(texts.check, {"common/base/a.cc": code}, {})
        return [int(each.split(":")[1]) for each in found]

    def test_searches_and_comparisons_are_found(self):
        for code in ('error.message() == "gone"', '"gone" == error.message()', 'error.what() != text', 'e->message().starts_with(kGone)',
                     'error.message().find(": ") != text.npos', "error.message().ends_with('x')", "exception.getDescription() == kPeer",
                     'strstr(error.what(), "gone")', "contains(error.message(), kGone)", "text.compare(0, 3, x) || other.message().contains(x)",
                     'std::regex_search(error.message(), gone)', "std::string_view(error.what()).starts_with(x)",
                     "std::string(error.what()) == x", "kGone == cause_->message()", "cause.error().message().rfind(x)"):
            self.assertEqual(self.lines(f"bool f() {{\n  return {code};\n}}\n"), [2], code)

    def test_a_variable_that_holds_the_text_is_followed_to_the_end_of_its_block(self):
        self.assertEqual(self.lines('void f() {\n  const std::string& text = error.message();\n  if (a) {\n  }\n'
                                    "  if (text.find('x') > 0) return;\n}\nvoid g(std::string text) {\n  text.find('x');\n}\n"), [5])
        self.assertEqual(self.lines("void f() {\n  const auto whole = exception.getDescription();\n"
                                    "  const std::string_view text(whole.begin(), whole.size());\n  return text == kGone;\n}\n"), [4])

    def test_what_is_printed_or_passed_on_is_none(self):
        for code in ('log(error.message())', 'text + error.message()', 'error.message().empty()', 'model.get_message() == kKey',
                     'error.code() == ErrorCode::kGone ? error.message() : ""', "print(error.what()); a == b", "message() // == text",
                     "error.message().size() == 3"):
            self.assertEqual(self.lines(f"auto f() {{\n  return {code};\n}}\n"), [], code)

    def test_the_conversion_files_may_and_tests_may(self):
        code = "bool b = error.message() == text;\n"
        self.assertEqual(self.found(texts.check, {"common/net/error_bridge.cc": code, "tests/unit/a.cc": code}, {}), [])

    def test_a_listed_file_may_until_it_searches_no_more(self):
        listed = {"common/base/a.cc": "why"}
        self.assertEqual(self.found(texts.check, {"common/base/a.cc": "bool b = error.message() == text;\n"}, listed), [])
        self.assert_found("take it off the list", self.found(texts.check, {"common/base/a.cc": ""}, listed))
