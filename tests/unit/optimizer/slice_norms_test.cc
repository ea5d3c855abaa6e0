#include "common/optimizer/slice_norms.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>

#include "common/optimizer/parameter_store.h"
#include "tests/unit/optimizer/golden.h"

namespace dtf::optimizer {
namespace {

using golden::Kind;
using golden::randomValues;

arena::Gradient gradientOf(const std::vector<float>& values) {
  auto owner = std::make_shared<const std::vector<float>>(values);
  return {*owner, owner};
}

std::vector<float> concatenate(const std::vector<std::vector<float>>& parts, uint64_t elements) {
  std::vector<float> all;
  for (const std::vector<float>& part : parts) {
    all.insert(all.end(), part.begin(), part.end());
    all.resize((all.size() + 15) / 16 * 16);
  }
  all.resize(elements);
  return all;
}

// Each variable has its own ratio, and the same bits whatever precedes it in the arena.
TEST(SliceNorms, AVariableDoesNotFeelItsNeighbours) {
  for (const Kind kind : {Kind::kLars, Kind::kLamb}) {
    cluster::OptimizerSpec spec = cluster::defaultOptimizer(kind);
    spec.learning_rate = 0.1;
    const std::vector<float> first = randomValues(1, 0, 21), second = randomValues(1, 1, 4999);
    const std::vector<float> g1 = randomValues(2, 0, 21), g2 = randomValues(2, 1, 4999);
    ParameterStore both(spec, 32 + 5008, {{0, 0, 21, 0}, {1, 0, 4999, 32}});
    ParameterStore alone(spec, 5008, {{0, 0, 4999, 0}});
    both.initialise(concatenate({first, second}, 5040));
    alone.initialise(concatenate({second}, 5008));
    for (int t = 0; t < 5; ++t) {
      both.apply({gradientOf(concatenate({g1, g2}, 5040))});
      alone.apply({gradientOf(concatenate({g2}, 5008))});
    }
    EXPECT_EQ(
        std::memcmp(both.current()->data() + 32, alone.current()->data(), 5008 * sizeof(float)), 0);
    // The small one alone follows the reference, too.
    golden::Reference reference(spec, first);
    for (int t = 0; t < 5; ++t) reference.step({g1.begin(), g1.end()});
    for (size_t i = 0; i < first.size(); ++i)
      EXPECT_NEAR(both.current()->data()[i], reference.w[i], 5e-6);
  }
}

TEST(SliceNorms, ARatioWithoutANormIsOne) {
  UpdateConstants lars;
  lars.kind = Kind::kLars;
  lars.eeta = 0.001f;
  EXPECT_EQ(trustRatio(lars, 0, 3), 1);
  EXPECT_EQ(trustRatio(lars, 3, 0), 1);
  EXPECT_FLOAT_EQ(trustRatio(lars, 3, 6), 0.0005f);
  UpdateConstants lamb;
  lamb.kind = Kind::kLamb;
  EXPECT_FLOAT_EQ(trustRatio(lamb, 3, 6), 0.5f);
  EXPECT_EQ(trustRatio(lamb, 0, 6), 1);
}

TEST(SliceNorms, ArenasMayBeEmptyOrBeginWithPadding) {
  cluster::OptimizerSpec spec = cluster::defaultOptimizer(Kind::kLars);
  ParameterStore empty(spec, 0);
  empty.initialise({});
  empty.apply({arena::Gradient{}});
  EXPECT_EQ(empty.version(), 1u);
  ParameterStore shifted(spec, 32, {{0, 0, 16, 16}});
  std::vector<float> values(32);
  std::fill(values.begin() + 16, values.end(), 1.0f);
  shifted.initialise(values);
  shifted.apply({gradientOf(values)});
  EXPECT_EQ(shifted.current()->data()[15], 0);
  EXPECT_LT(shifted.current()->data()[16], 1);
}

TEST(SliceNormsDeathTest, NothingRunsBeforeAllIsMeasured) {
  ParameterStore store(cluster::defaultOptimizer(Kind::kLamb), 64, {{0, 0, 64, 0}});
  store.initialise(std::vector<float>(64, 1));
  const std::shared_ptr<UpdateJob> job =
      store.prepareApply({gradientOf(std::vector<float>(64, 1))});
  job->measure(0, 32);
  EXPECT_DEATH(job->run(0, 64), "");
}

TEST(SliceNormsDeathTest, OnlyWholeVariablesThatLieInTheArenaInOrderHaveNorms) {
  const auto of = [](std::vector<arena::Slice> slices) { return SliceNorms(slices, 64); };
  of({{0, 0, 32, 0}, {1, 0, 32, 32}});
  EXPECT_DEATH(of({{0, 16, 32, 0}}), "slice.begin == 0") << "a part";
  EXPECT_DEATH(of({{0, 0, 32, 32}, {1, 0, 32, 0}}), "free_from");
  EXPECT_DEATH(of({{0, 0, 64, 16}}), "elements");
}

}  // namespace
}  // namespace dtf::optimizer
