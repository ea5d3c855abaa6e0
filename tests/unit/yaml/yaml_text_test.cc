#include "common/yaml/yaml_text.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace dtf::yaml {
namespace {

YamlNode parsed(const std::string& text) {
  Report report;
  const int source = report.addFlag("--set a=b");
  std::optional<YamlNode> root = parseYaml(text, source, report);
  EXPECT_TRUE(root.has_value()) << text;
  return root.value_or(YamlNode{});
}

bool same(const YamlNode& a, const YamlNode& b) {
  if (a.kind != b.kind || a.text != b.text || a.key != b.key || a.quoted != b.quoted) return false;
  if (a.children.size() != b.children.size()) return false;
  for (size_t i = 0; i < a.children.size(); ++i)
    if (!same(a.children[i], b.children[i])) return false;
  return true;
}

TEST(YamlText, ATreeIsAKeyALineAndShortListsAreInBrackets) {
  EXPECT_EQ(
      yamlText(parsed("{job: j, cluster: {ps: ['a:1', b:2]}, layers: [flatten: , dense: {units: "
                      "10}]}")),
      "job: j\n"
      "cluster:\n"
      "  ps: [\"a:1\", \"b:2\"]\n"
      "layers:\n"
      "  - {flatten: null}\n"
      "  -\n"
      "    dense: {units: 10}\n");
}

TEST(YamlText, ItIsReadAsTheSameTree) {
  const std::vector<std::string> texts = {
      "a: -1.5\nb: [1, '1', x y, \"tab\\t\"]\nc: {d: {}, e: []}\n", "[1, [2, {a: [b]}]]", "~",
      "'a b': {'': 1}\n", "a: \"" + std::string(200, 'x') + "\"\n"};
  for (const std::string& text : texts) {
    const YamlNode tree = parsed(text);
    const YamlNode again = parsed(yamlText(tree));
    // Plain text with spaces comes back in quotes, as it is no number.
    EXPECT_EQ(yamlText(again), yamlText(tree)) << text;
    EXPECT_EQ(again.children.size(), tree.children.size()) << text;
  }
  const YamlNode numbers = parsed("{a: 1, b: -2, c: 1e-3, d: '5'}");
  EXPECT_TRUE(same(parsed(yamlText(numbers)), numbers));
}

}  // namespace
}  // namespace dtf::yaml
