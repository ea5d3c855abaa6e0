// Stores with a variable that the optimizer doesn't change, between two that it updates.

#include "common/optimizer/moving_average.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "common/base/check.h"
#include "common/base/random.h"
#include "common/optimizer/parameter_store.h"

namespace dtf::optimizer {
namespace {

using Kind = cluster::OptimizerSpec::Kind;

constexpr double kMomentum = 0.9;
constexpr uint64_t kTrained = 3000, kMoving = 2100;  // more than a chunk
constexpr Kind kAllKinds[] = {
    Kind::kGradientDescent, Kind::kMomentum, Kind::kAdagrad, Kind::kAdadelta, Kind::kAdam,
    Kind::kAdamW,           Kind::kRmsProp,  Kind::kFtrl,    Kind::kLars,     Kind::kLamb};

// A model with every option of the optimizer beside its formula.
arena::ModelDeclaration modelOf(Kind kind, bool with_statistic) {
  std::vector<arena::VariableParts> variables = {{"a", Shape{kTrained}, {{0, 0, kTrained}}}};
  if (with_statistic)
    variables.push_back({"moving_mean", Shape{kMoving}, {{0, 0, kMoving}}, kMomentum});
  variables.push_back({"b", Shape{kTrained}, {{0, 0, kTrained}}});
  arena::ModelDeclaration model;
  model.layout = arena::makeLayout(variables, 1);
  model.optimizer = cluster::defaultOptimizer(kind);
  model.optimizer.clip_by_value = 0.25;
  model.optimizer.moving_average_decay = 0.8;
  if (kind != Kind::kFtrl) model.optimizer.weight_decay = 0.01;
  return model;
}

// Returns values for each variable: the same with the statistic and without.
std::vector<float> arenaOf(const arena::ModelDeclaration& model, uint64_t seed) {
  std::vector<float> arena(model.layout.shards[0].elements);
  for (const arena::Slice& slice : model.layout.shards[0].slices) {
    const std::string& name = model.layout.variables[slice.variable].name;
    Random random(seed, static_cast<uint64_t>(name[0]));
    for (uint64_t i = 0; i < slice.count; ++i) arena[slice.offset + i] = random.uniform(-1, 1);
  }
  return arena;
}

std::span<const float> elementsOf(const arena::ModelDeclaration& model,
                                  std::span<const float> arena, const std::string& name) {
  for (const arena::Slice& slice : model.layout.shards[0].slices)
    if (model.layout.variables[slice.variable].name == name)
      return arena.subspan(slice.offset, slice.count);
  DTF_CHECK_MSG(false, name);
}

std::span<const float> valuesOf(const ParameterStore& store) {
  return {store.current()->data(), store.elements()};
}

// In pieces of `part` elements.
void applyInParts(ParameterStore& store, const arena::ModelDeclaration& model, uint64_t seed,
                  uint64_t part) {
  std::vector<arena::Gradient> gradients;
  for (const uint64_t worker : {1, 2}) {
    auto values = std::make_shared<std::vector<float>>(arenaOf(model, 100 * seed + worker));
    gradients.push_back({*values, values});
  }
  const std::shared_ptr<UpdateJob> job = store.prepareApply(std::move(gradients));
  if (job->needsMeasuring()) job->measure(0, job->elements());
  for (uint64_t at = 0; at < job->elements(); at += part)
    job->run(at, std::min(at + part, job->elements()));
  store.commit(job);
}

bool sameBits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

// Keras' assign_moving_average of the mean of two workers' statistics.
std::vector<float> expectedStatistic(const arena::ModelDeclaration& model, int steps) {
  const std::vector<float> initial = arenaOf(model, 7);
  const std::span<const float> begin = elementsOf(model, initial, "moving_mean");
  std::vector<float> moved(begin.begin(), begin.end());
  for (int step = 1; step <= steps; ++step) {
    const std::vector<float> one = arenaOf(model, 100 * static_cast<uint64_t>(step) + 1);
    const std::vector<float> two = arenaOf(model, 100 * static_cast<uint64_t>(step) + 2);
    const std::span<const float> first = elementsOf(model, one, "moving_mean");
    const std::span<const float> second = elementsOf(model, two, "moving_mean");
    for (size_t i = 0; i < moved.size(); ++i) {
      const float mean = (first[i] + second[i]) / 2;
      moved[i] -= (moved[i] - mean) * static_cast<float>(1 - kMomentum);
    }
  }
  return moved;
}

TEST(MovingAverage, FollowsItsOwnRuleUnderEveryOptimizer) {
  constexpr int kSteps = 3;
  for (const Kind kind : kAllKinds) {
    SCOPED_TRACE(cluster::optimizerName(kind));
    const arena::ModelDeclaration model = modelOf(kind, true), without = modelOf(kind, false);
    const auto store = makeStore(model, 0), bare = makeStore(without, 0);
    store->initialise(arenaOf(model, 7));
    bare->initialise(arenaOf(without, 7));
    for (int step = 1; step <= kSteps; ++step) {
      applyInParts(*store, model, static_cast<uint64_t>(step), 1 << 20);
      applyInParts(*bare, without, static_cast<uint64_t>(step), 1 << 20);
    }
    EXPECT_TRUE(sameBits(elementsOf(model, valuesOf(*store), "moving_mean"),
                         expectedStatistic(model, kSteps)))
        << "neither clipped, decayed nor scaled by a learning rate";
    for (const std::string name : {"a", "b"})
      EXPECT_TRUE(sameBits(elementsOf(model, valuesOf(*store), name),
                           elementsOf(without, valuesOf(*bare), name)))
          << name << " is trained as without the statistic";
    const uint32_t slots = store->slotCount();
    for (uint32_t slot = 0; slot < slots; ++slot) {
      const std::span<const float> kept = elementsOf(model, store->slot(slot), "moving_mean");
      if (isMovingAverage(model.optimizer, slot)) {
        EXPECT_TRUE(sameBits(kept, elementsOf(model, valuesOf(*store), "moving_mean")))
            << "what evaluations read is the statistic itself";
      } else {
        EXPECT_EQ(std::ranges::count(kept, initialSlotValue(model.optimizer, slot)),
                  static_cast<int64_t>(kept.size()))
            << store->slotName(slot);
      }
    }
  }
}

TEST(MovingAverage, HasTheSameBitsForEverySplitOfTheWork) {
  for (const Kind kind : {Kind::kAdam, Kind::kLamb}) {
    const arena::ModelDeclaration model = modelOf(kind, true);
    std::vector<float> whole;
    for (const uint64_t part : {1 << 20, 16, 48, 2048, 3008}) {
      const auto store = makeStore(model, 0);
      store->initialise(arenaOf(model, 7));
      for (uint64_t step = 1; step <= 2; ++step) applyInParts(*store, model, step, part);
      if (whole.empty()) whole.assign(valuesOf(*store).begin(), valuesOf(*store).end());
      EXPECT_TRUE(sameBits(valuesOf(*store), whole))
          << cluster::optimizerName(kind) << " in parts of " << part;
    }
  }
}

TEST(MovingAverage, HasNoSlotsInACheckpoint) {
  const arena::ModelDeclaration model = modelOf(Kind::kAdam, true);
  EXPECT_EQ(slotCount(model.optimizer, model.layout.variables[0]), 3u);
  EXPECT_EQ(slotCount(model.optimizer, model.layout.variables[1]), 0u);
}

TEST(MovingAverageDeathTest, ItsMomentumHasBeenChecked) {
  arena::ModelDeclaration model = modelOf(Kind::kAdam, true);
  model.layout.variables[1].momentum = 1;
  EXPECT_DEATH(makeStore(model, 0), "momentum");
}

}  // namespace
}  // namespace dtf::optimizer
