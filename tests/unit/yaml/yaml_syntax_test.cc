#include "common/yaml/yaml_syntax.h"

#include <gtest/gtest.h>

#include "common/yaml/keys.h"
#include "tests/support/temporary_files.h"

namespace dtf::yaml {
namespace {

using testing::badConfigOf;

std::string firstLineOf(const Report& report) {
  const std::string message = badConfigOf([&] { report.throwIfAny(); });
  return message.substr(0, message.find('\n'));
}

// Returns the first line of checkCharacters()'s report.
std::string characters(const std::string& text, bool is_good) {
  Report report;
  EXPECT_EQ(checkCharacters(text, report.addFile("f.yaml", text), report), is_good) << text;
  return firstLineOf(report);
}

// Returns the first line of reportSyntax()'s report, for a mistake that the library saw at `line`.
std::string syntax(const std::string& text, int line, const SyntaxMistake& mistake) {
  Report report;
  const int source = report.addFile("f.yaml", text);
  reportSyntax(text, {source, line, 1}, mistake, report);
  return firstLineOf(report);
}

TEST(YamlSyntax, ATabMayStandBehindTheIndentationOnly) {
  EXPECT_EQ(characters("a: 1\t# x\n  b:\t2\n", true), "no error");
  EXPECT_EQ(characters("a:\n \tb: 1\n", false),
            "f.yaml:2:2: error: a tab in the indentation: YAML indents with spaces");
}

TEST(YamlSyntax, ABinaryFileIsNoText) {
  EXPECT_EQ(characters(std::string("a: 1\n\x7f\n"), false),
            "f.yaml: error: line 2 holds a control character: this is not a text file in UTF-8");
  EXPECT_EQ(characters(std::string("a\0b", 3), false).find("f.yaml: error: line 1"), 0u);
  EXPECT_EQ(characters("a: 1\r\nb: \xC3\xA9\r\n", true), "no error");
}

TEST(YamlSyntax, TheLibrarysWordsBecomeThoseOfAnEditor) {
  EXPECT_EQ(explainSyntax("end of map flow not found").message, "expected ',' or '}'");
  EXPECT_EQ(explainSyntax("illegal flow end").message,
            "this closes a bracket that was never opened");
  EXPECT_EQ(explainSyntax("something new").message, "not YAML: something new");
}

TEST(YamlSyntax, TheBracketThatIsLeftOpenIsShownNotWhatFollowsIt) {
  const SyntaxMistake expected = explainSyntax("end of sequence flow not found");
  EXPECT_TRUE(expected.may_be_open_bracket);
  EXPECT_EQ(syntax("a: [1, 2\nb: 3\n", 2, expected), "f.yaml:1:4: error: this '[' is never closed");
  EXPECT_EQ(syntax("a: {b: [1, 2]\nc: 3\n", 2, {"the key is no word", true}),
            "f.yaml:1:4: error: this '{' is never closed");
  EXPECT_EQ(syntax("a: ['[', \"{\"] # {\nb: 1\n", 2, expected),
            "f.yaml:2:1: error: " + expected.message)
      << "in quotes and comments there are no brackets";
  EXPECT_EQ(syntax("a: [1\n", 1, {"other"}), "f.yaml:1:1: error: other")
      << "no bracket is the cause of that";
}

TEST(YamlSyntax, AKeyWithoutASpaceIsShownWhereItStands) {
  static constexpr Key kKeys[] = {whole("batch_size", 1, 10, "how many")};
  static constinit const Table kTable{"data", kKeys};
  static constexpr const Table* kAll[] = {&kTable};
  Report report;
  report.setTables(kAll);
  const std::string text = "data:\n  batch_size:5\n  seed: 3\n";
  const int source = report.addFile("f.yaml", text);
  reportSyntax(text, {source, 3, 7}, {"a ':' where none may be"}, report);
  EXPECT_EQ(firstLineOf(report), "f.yaml:2:3: error: a space is missing after 'batch_size:'");
}

}  // namespace
}  // namespace dtf::yaml
