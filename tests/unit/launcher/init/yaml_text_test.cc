#include "launcher/init/yaml_text.h"

#include <gtest/gtest.h>

#include "common/cluster/cluster_yaml.h"
#include "common/yaml/yaml_tree.h"

namespace dtf::launcher {
namespace {

// Parses with dtf's own reader.
yaml::YamlNode parsed(const std::string& text) {
  yaml::Report report;
  const auto root = yaml::parseYaml(text, report.addFile("t.yaml", text), report);
  report.throwIfAny();
  return root.value();
}

TEST(YamlText, EveryWordReadsAsItself) {
  for (const std::string word :
       {"Adelie", "yes",   "No",   "y",   "null", "1",          "1.0",      "-",   "a: b",
        "a #b",   "# a",   "- a",  "[a]", "{a",   "'a'",        "\"a\"",    "\\",  "a\\n",
        "*a",     "&a",    "!a",   "%a",  "@a",   "`a`",        "|",        ">",   "?",
        "a,b",    " a",    "a ",   "~",   ".inf", "2020-01-01", "0x1f",     "1e3", "=",
        "<<",     "Größe", "日本", "😀",   "true", "a/b.c",      "\xc2\x85", "on"}) {
    ASSERT_TRUE(isWritable(word)) << word;
    const yaml::YamlNode node = parsed("[" + yamlText(word) + "]\n").children.at(0);
    EXPECT_TRUE(node.isScalar()) << word;
    EXPECT_EQ(node.text, word);
    const bool is_number = word.find_first_of("0123456789") == 0;
    EXPECT_TRUE(node.quoted || !is_number) << word;
  }
}

TEST(YamlText, SomeTextsCannotBeWritten) {
  for (const std::string text : {"", "a\nb", "a\tb", "\x1b[31m", "\xff\xfe"})
    EXPECT_FALSE(isWritable(text)) << text;
  EXPECT_FALSE(isWritable(std::string(5000, 'a')));
}

TEST(YamlText, PlainWordsHaveNoQuotes) {
  EXPECT_EQ(yamlText("bill_length_mm"), "bill_length_mm");
  EXPECT_EQ(yamlText("old town"), "old town");
  EXPECT_EQ(yamlText("a \"b\""), "\"a \\\"b\\\"\"");
}

TEST(YamlText, LongListsAreBrokenIntoLinesThatReadAsOneList) {
  std::vector<std::string> words;
  for (int i = 0; i < 300; ++i) words.push_back("word " + std::to_string(i));
  const std::string text = "  a:\n" + yamlWords("words", words, 4) + "\n  b: 1\n";
  size_t at = 0;
  for (size_t end; (end = text.find('\n', at)) != text.npos; at = end + 1)
    EXPECT_LE(end - at, 100u);
  const yaml::YamlNode root = parsed("root:\n" + text);
  const yaml::YamlNode& list = *root.find("root")->find("a")->find("words");
  ASSERT_EQ(list.children.size(), 300u);
  EXPECT_EQ(list.children[299].text, "word 299");
  EXPECT_EQ(yamlList("std", {}, 2), "  std: []");
}

// A mean of millions with a deviation of 20 would be off by more than that in six digits.
TEST(YamlText, NumbersReadAsTheSameFloat) {
  for (const double number : {45'000'123.0, -0.1234567, 1.0 / 3, 1e-8, 99'999'999.0, 3.4e38})
    EXPECT_EQ(std::stof(parsed("[" + yamlNumber(number) + "]").children.at(0).text),
              static_cast<float>(number))
        << yamlNumber(number);
  EXPECT_EQ(yamlNumber(45'000'124), "45000124");
}

TEST(YamlText, NumbersAreShort) {
  EXPECT_EQ(yamlNumber(0.1 + 0.2), "0.3");
  EXPECT_EQ(yamlNumber(1e6), "1e+06");
  EXPECT_EQ(yamlNumber(-3), "-3");
  EXPECT_EQ(yamlNumber(0), "0");
}

}  // namespace
}  // namespace dtf::launcher
