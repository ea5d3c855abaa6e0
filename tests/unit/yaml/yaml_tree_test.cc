#include "common/yaml/yaml_tree.h"

#include <gtest/gtest.h>

#include "common/base/error.h"
#include "tests/support/temporary_files.h"

namespace dtf::yaml {

using testing::badConfigOf;
using testing::TemporaryFiles;

namespace {

std::string mistakeOf(const std::string& text) {
  Report report;
  const int source = report.addFile("f.yaml", text);
  parseYaml(text, source, report);
  const std::string message = badConfigOf([&] { report.throwIfAny(); });
  return message.substr(0, message.find('\n'));
}

// `levels` of anchors, each holding ten times the one before.
std::string aliasBomb(int levels) {
  std::string text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i <= levels; ++i) {
    const std::string before = "*a" + std::to_string(i - 1);
    text += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [";
    for (int n = 0; n < 10; ++n) text += (n > 0 ? ", " : "") + before;
    text += "]\n";
  }
  return text;
}

}  // namespace

TEST(YamlTree, KnowsWhereEveryKeyAndValueStands) {
  Report report;
  const std::string text = "a: 1\nb:\n  - x: \"q\"\n  - flatten:\n";
  const std::optional<YamlNode> root = parseYaml(text, report.addFile("f", text), report);
  ASSERT_TRUE(root && root->isMap());
  EXPECT_EQ(root->find("a")->place.column, 4);
  const YamlNode& b = *root->find("b");
  EXPECT_EQ(b.where().line, 2);  // a list has its key's place
  const YamlNode& q = *b.children[0].find("x");
  EXPECT_TRUE(q.quoted);
  EXPECT_EQ(q.text, "q");
  EXPECT_EQ(q.key_place.line, 3);
  EXPECT_TRUE(b.children[1].find("flatten")->isNull());
  EXPECT_EQ(b.children[1].find("flatten")->where().line, 4);
}

TEST(YamlTree, ExpandsAliases) {
  Report report;
  const std::string text = "a: &x {k: 1}\nb: *x\nc: [*x, *x]\n";
  const std::optional<YamlNode> root = parseYaml(text, report.addFile("f", text), report);
  ASSERT_TRUE(root);
  EXPECT_EQ(root->find("b")->find("k")->text, "1");
  EXPECT_EQ(root->find("c")->children.size(), 2u);
}

TEST(YamlTree, MergesTheKeysThatAMapLacks) {
  Report report;
  const std::string text =
      "a: &a {x: 1, y: 2}\nb: &b {y: 3, z: 4}\none: {<<: *a, y: 5}\n"
      "several:\n  w: 6\n  <<: [*a, *b]\nagain: {<<: *none_yet}\n";
  const std::string good = text.substr(0, text.find("again"));
  const std::optional<YamlNode> root = parseYaml(good, report.addFile("f", good), report);
  ASSERT_TRUE(root);
  const auto shown = [](const YamlNode& map) {
    std::string all;
    for (const YamlNode& child : map.children) all += child.key + child.text + " ";
    return all;
  };
  EXPECT_EQ(shown(*root->find("one")), "y5 x1 ");
  EXPECT_EQ(shown(*root->find("several")), "w6 x1 y2 z4 ");
  EXPECT_EQ(root->find("one")->find("x")->place.line, 1) << "it stands where it was written";
  EXPECT_EQ(mistakeOf(text),
            "f.yaml:7:13: error: this alias (*name) has no anchor (&name) before it");
  EXPECT_EQ(
      mistakeOf("a: &a 1\nb: {<<: *a}\n"),
      "f.yaml:2:9: error: '<<' takes the keys of a map: write <<: *name, or <<: [*one, *two]");
  EXPECT_EQ(mistakeOf("a: &a {x: 1}\nb: {<<: *a, <<: *a}\n"),
            "f.yaml:2:13: error: duplicate key '<<', first on line 2");
}

TEST(YamlTree, RefusesWhatCouldExhaustTheProcess) {
  EXPECT_EQ(mistakeOf(aliasBomb(9)),
            "f.yaml:5:40: error: more than 100000 values, aliases expanded");
  EXPECT_EQ(mistakeOf(std::string(50'000, '[') + std::string(50'000, ']')),
            "f.yaml:1:33: error: nested deeper than 32 levels");
  std::string nested = "a0: &a0 [x]\n";
  for (int i = 1; i < 1000; ++i)
    nested += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [*a" +
              std::to_string(i - 1) + "]\n";
  EXPECT_NE(mistakeOf(nested).find("nested deeper than 32 levels"), std::string::npos);
  std::string long_text = "a: &a " + std::string(100'000, 'x') + "\nb: [";
  for (int i = 0; i < 50; ++i) long_text += i == 0 ? "*a" : ", *a";
  EXPECT_EQ(mistakeOf(long_text + "]\n"),
            "f.yaml:2:169: error: aliases stand for more than 4194304 bytes of text");
  EXPECT_EQ(mistakeOf("a: &a [*a]"), "f.yaml:1:8: error: an alias inside of what it stands for");
}

TEST(YamlTree, SaysWhatIsWrongWithTheSyntax) {
  EXPECT_EQ(mistakeOf("a: [1, 2\nb: 3\n"), "f.yaml:1:4: error: this '[' is never closed");
  EXPECT_EQ(mistakeOf("a: b: c\n"),
            "f.yaml:1:5: error: a ':' where none may be: quote the text, or start a new line");
  EXPECT_EQ(mistakeOf("a:\n\tb: 1\n  \t c: 2\n"),
            "f.yaml:2:1: error: a tab in the indentation: YAML indents with spaces");
  EXPECT_EQ(mistakeOf("a: 1\nb: 2\na: 3\n"),
            "f.yaml:3:1: error: duplicate key 'a', first on line 1");
  EXPECT_EQ(mistakeOf("a: !!int 3\n"),
            "f.yaml:1:4: error: the tag 'tag:yaml.org,2002:int' has no meaning here: remove it");
  EXPECT_EQ(mistakeOf("[a]: 3\n"), "f.yaml:1:1: error: a key must be a word, not a list or a map");
  EXPECT_EQ(mistakeOf(": 3\n"), "f.yaml:1:1: error: a key is missing here");
  EXPECT_EQ(mistakeOf("a: 1\n---\nb: 2\n"),
            "f.yaml:2:1: error: a second document: a file holds one");
  EXPECT_EQ(mistakeOf(std::string("a: 1\nb: \0 2\n", 12)),
            "f.yaml: error: line 2 holds a control character: this is not a text file in UTF-8");
}

TEST(YamlTree, FindsTheBracketThatIsLeftOpen) {
  EXPECT_EQ(mistakeOf("a: {b: [1], c: [2\nd: {e: f}\n"),
            "f.yaml:1:16: error: this '[' is never closed");
  EXPECT_EQ(mistakeOf("# it's {\na: [\"]\", 'x]', don't # [\n"),
            "f.yaml:2:4: error: this '[' is never closed");
  EXPECT_EQ(mistakeOf("a: [\"x\" y]\n"), "f.yaml:1:9: error: expected ',' or ']'");
}

TEST(YamlTree, AllowsTabsAfterTheIndentation) {
  EXPECT_EQ(mistakeOf("a:\t1\t# note\nb: [1,\t2]\n"), "no error");
}

TEST(YamlTree, ReadsFilesOfAtMostOneMebibyte) {
  const TemporaryFiles files;
  files.write("large.yaml", "a: 1\n" + std::string(1 << 20, '#'));
  files.write("bom.yaml",
              "\xEF\xBB\xBF"
              "a: 1\n");
  files.write("empty.yaml", "# nothing\n");
  files.write("list.yaml", "- a\n");
  const auto load = [](const char* name) {
    Report report;
    parseYamlFile(name, nullptr, report);
    const std::string message = badConfigOf([&] { report.throwIfAny(); });
    return message.substr(0, message.find('\n'));
  };
  EXPECT_EQ(load("large.yaml"),
            "large.yaml: error: cannot read large.yaml: larger than the limit of 1048576 bytes");
  EXPECT_EQ(load("none.yaml"),
            "none.yaml: error: cannot read none.yaml: No such file or directory (2)");
  EXPECT_EQ(load("."), ".: error: cannot read .: is a folder");
  EXPECT_EQ(load("empty.yaml"), "empty.yaml: error: the file is empty");
  EXPECT_EQ(load("list.yaml"), "list.yaml:1:1: error: expected a map of keys and values");
  EXPECT_EQ(load("bom.yaml"), "no error");
}

}  // namespace dtf::yaml
