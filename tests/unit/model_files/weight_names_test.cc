#include "common/model_files/weight_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/error.h"

namespace dtf::model_files {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

FoundWeights foundOf(const std::vector<std::string>& names) {
  FoundWeights found;
  for (const std::string& name : names)
    found.tensors.push_back({name, Tensor(DType::kFloat32, Shape{1})});
  return found;
}

std::vector<std::string> namesAfter(const std::vector<std::string>& names, const NameRules& rules) {
  FoundWeights found = foundOf(names);
  applyNames(found, rules, "w.npz");
  std::vector<std::string> after;
  for (const FoundTensor& tensor : found.tensors) after.push_back(tensor.matchedName());
  return after;
}

template <class Run>
std::string mistakeOf(const Run& run) {
  try {
    run();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUsage);
    return error.message();
  }
  ADD_FAILURE() << "must throw";
  return "";
}

// "backbone" is no beginning of "backbone2".
TEST(WeightNames, APrefixIsWholePartsOfAName) {
  for (const char* const prefix : {"backbone", "backbone."}) {
    FoundWeights found =
        foundOf({"backbone.fc.weight", "backbone2.fc.weight", "head", "backbone."});
    found.skipped = {{"backbone.count", "its type is I64"}, {"steps", "its type is I64"}};
    applyNames(found, {prefix, {}}, "w.npz");
    ASSERT_EQ(found.tensors.size(), 1u) << prefix;
    EXPECT_EQ(found.tensors[0].name, "backbone.fc.weight");
    EXPECT_EQ(found.tensors[0].matchedName(), "fc.weight");
    ASSERT_EQ(found.skipped.size(), 1u);
    EXPECT_EQ(found.skipped[0].matchedName(), "count");
    ASSERT_EQ(found.excluded.size(), 4u);
    EXPECT_EQ(found.excluded[0].name, "backbone2.fc.weight");
    EXPECT_EQ(found.excluded[3].name, "steps");
    EXPECT_THAT(found.excluded[0].why, HasSubstr("its name doesn't begin with backbone"));
  }
}

TEST(WeightNames, ARenameIsOfAWholeNameOrABeginning) {
  const std::vector<Rename> renames = {
      {"fc.weight", "head.weight"}, {"a.", "b."}, {"a.b.", ""}, {"a.b.c", "d"}};
  EXPECT_THAT(namesAfter({"fc.weight", "fc.weight2", "a.x", "a.b.x", "a.b.c"}, {"", renames}),
              ElementsAre("head.weight", "fc.weight2", "b.x", "x", "d"));
  EXPECT_THAT(namesAfter({"net.fc.weight", "net.fc.bias"}, {"net", {{"fc.", "head/"}}}),
              ElementsAre("head/weight", "head/bias"));
}

// DataParallel puts "module." before everything, also before the part that the user names.
TEST(WeightNames, ARuleIsMetBehindModule) {
  EXPECT_EQ(withoutModule("module.fc.weight"), "fc.weight");
  EXPECT_EQ(withoutModule("fc.module.weight"), std::nullopt);
  EXPECT_EQ(withoutModule("module."), std::nullopt);
  EXPECT_THAT(namesAfter({"module.net.fc.weight"}, {"net", {}}), ElementsAre("fc.weight"));
  EXPECT_THAT(namesAfter({"module.net.fc.weight"}, {"module", {}}), ElementsAre("net.fc.weight"));
  EXPECT_THAT(namesAfter({"module.fc.weight", "module.fc.bias"}, {"", {{"fc.weight", "a"}}}),
              ElementsAre("a", "module.fc.bias"));
}

TEST(WeightNames, ARuleThatNoNameMeetsIsAnError) {
  const auto mistakeFor = [](const NameRules& rules) {
    FoundWeights found = foundOf({"1", "2", "3", "4", "5", "fc.weight"});
    return mistakeOf([&] { applyNames(found, rules, "w.npz"); });
  };
  EXPECT_EQ(mistakeFor({"net", {}}),
            "w.npz: no tensor's name begins with --prefix 'net'; the names are '1', '2', '3', '4', "
            "'5' and 1 more");
  EXPECT_THAT(mistakeFor({"", {{"fc.weight", "a"}, {"fc.bias", "b"}}}),
              HasSubstr("w.npz: --rename fc.bias=b: no tensor's name is 'fc.bias'; the names are"));
  EXPECT_THAT(mistakeFor({"", {{"net.", ""}}}), HasSubstr("begins with 'net.'"));
  EXPECT_EQ(mistakeFor({"", {{"1", "2"}}}),
            "w.npz: after --prefix and --rename both '1' and '2' are '2'");
}

TEST(WeightNames, ARenameIsParsed) {
  const Rename whole = parseRename("a=b=c");
  EXPECT_EQ(whole.from, "a=b");
  EXPECT_EQ(whole.to, "c");
  EXPECT_EQ(parseRename("net.=").to, "");
  for (const char* const text : {"a", "=a", ""})
    EXPECT_THAT(mistakeOf([&] { parseRename(text); }), HasSubstr("--rename expects FROM=TO"));
  for (const char* const text : {"a=", "a=b.", "a.=b"})
    EXPECT_THAT(mistakeOf([&] { parseRename(text); }),
                HasSubstr("both sides are whole names, or both end in '.'"));
}

}  // namespace
}  // namespace dtf::model_files
