#include "common/arena/parameter_layout.h"

#include <gtest/gtest.h>

namespace dtf::arena {
namespace {

VariableParts whole(const std::string& name, int64_t elements, uint32_t ps) {
  return {name, Shape{elements}, {{ps, 0, static_cast<uint64_t>(elements)}}};
}

TEST(ParameterLayout, RoundRobinVariablesLieOnAlternatingPsTheLastFirst) {
  const ParameterLayout layout = makeLayout(
      {whole("v1", 10, 0), whole("v2", 16, 1), whole("v3", 17, 0), whole("v4", 1, 1)}, 2);
  ASSERT_EQ(layout.shards.size(), 2u);
  EXPECT_EQ(layout.shards[0].slices, (std::vector<Slice>{{2, 0, 17, 0}, {0, 0, 10, 32}}));
  EXPECT_EQ(layout.shards[1].slices, (std::vector<Slice>{{3, 0, 1, 0}, {1, 0, 16, 16}}));
  EXPECT_EQ(layout.shards[0].elements, 48u);
  EXPECT_EQ(layout.shards[1].elements, 32u);
}

TEST(ParameterLayout, ASplitVariableHasASliceOnEachPs) {
  const ParameterLayout layout =
      makeLayout({{"big", Shape{10, 10}, {{0, 0, 34}, {1, 34, 33}, {2, 67, 33}}}}, 3);
  EXPECT_EQ(layout.shards[1].slices, (std::vector<Slice>{{0, 34, 33, 0}}));
  EXPECT_EQ(layout.shards[2].slices, (std::vector<Slice>{{0, 67, 33, 0}}));
}

TEST(ParameterLayout, SparseVariablesAreTheLastOfAShard) {
  const ParameterLayout layout =
      makeLayout({{"table", Shape{3, 5}, {{0, 0, 10}, {1, 10, 5}}, std::nullopt, true},
                  whole("v", 4, 0),
                  whole("u", 2, 1)},
                 2);
  EXPECT_EQ(layout.variables[0].name, "table");
  EXPECT_TRUE(layout.variables[0].is_sparse);
  EXPECT_EQ(layout.shards[0].slices, (std::vector<Slice>{{1, 0, 4, 0}, {0, 0, 10, 16}}));
  EXPECT_EQ(layout.shards[1].slices, (std::vector<Slice>{{2, 0, 2, 0}, {0, 10, 5, 16}}));
  EXPECT_EQ(rowElements(Shape{3, 5}), 5u);
  EXPECT_EQ(rowElements(Shape{3}), 1u);
  EXPECT_EQ(rowElements(Shape{3, 5, 2}), 10u);
}

TEST(ParameterLayout, APsMayHoldNothing) {
  const ParameterLayout layout = makeLayout({whole("v", 3, 0)}, 2);
  EXPECT_TRUE(layout.shards[1].slices.empty());
  EXPECT_EQ(layout.shards[1].elements, 0u);
}

TEST(ParameterLayout, FingerprintTellsLayoutsApart) {
  const uint64_t base = makeLayout({whole("a", 4, 0), whole("b", 4, 1)}, 2).fingerprint();
  EXPECT_EQ(base, makeLayout({whole("a", 4, 0), whole("b", 4, 1)}, 2).fingerprint());
  EXPECT_NE(base, makeLayout({whole("a", 4, 1), whole("b", 4, 0)}, 2).fingerprint());
  EXPECT_NE(base, makeLayout({whole("ab", 4, 0), whole("", 4, 1)}, 2).fingerprint());
  EXPECT_NE(base, makeLayout({whole("a", 5, 0), whole("b", 4, 1)}, 2).fingerprint());
  EXPECT_NE(base, makeLayout({whole("a", 4, 0), whole("b", 4, 1)}, 3).fingerprint());
  VariableParts moving = whole("b", 4, 1);
  moving.momentum = 0;
  const uint64_t at_once = makeLayout({whole("a", 4, 0), moving}, 2).fingerprint();
  EXPECT_NE(base, at_once);
  moving.momentum = 0.5;
  EXPECT_NE(at_once, makeLayout({whole("a", 4, 0), moving}, 2).fingerprint());
  VariableParts sparse = whole("b", 4, 1);
  sparse.is_sparse = true;
  EXPECT_NE(base, makeLayout({whole("a", 4, 0), sparse}, 2).fingerprint());
}

TEST(ParameterLayout, FingerprintIsTheSameOnEveryMachine) {
  // FNV-1a of nothing but two zero counts, computed by hand from its definition: sixteen zero
  // bytes.
  uint64_t expected = 0xcbf29ce484222325u;
  for (int i = 0; i < 16; ++i) expected *= 0x100000001b3u;
  EXPECT_EQ(ParameterLayout{}.fingerprint(), expected);
}

TEST(ParameterLayoutDeathTest, PartsMustCoverTheVariableExactly) {
  EXPECT_DEATH(makeLayout({{"v", Shape{10}, {{0, 0, 9}}}}, 1), "v");
  EXPECT_DEATH(makeLayout({{"v", Shape{10}, {{0, 0, 5}, {0, 4, 6}}}}, 1), "v");
  EXPECT_DEATH(makeLayout({{"v", Shape{10}, {{1, 0, 10}}}}, 1), "v");
  EXPECT_DEATH(makeLayout({{"v", Shape{2, 5}, {{0, 0, 6}, {0, 6, 4}}, std::nullopt, true}}, 1),
               "v");
}

}  // namespace
}  // namespace dtf::arena
