#include "common/optimizer/parameter_store.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <set>
#include <thread>
#include <vector>

#include "common/base/error.h"
#include "common/base/random.h"
#include "tests/support/test_seed.h"
#include "tests/unit/arena/sparse_fixture.h"

namespace dtf::optimizer {
namespace {

using namespace arena;

arena::Gradient constantGradient(uint64_t elements, float value) {
  auto values = std::make_shared<std::vector<float>>(elements, value);
  return {*values, values};
}

cluster::OptimizerSpec descent() {
  cluster::OptimizerSpec spec;
  spec.learning_rate = 1;
  return spec;
}

TEST(ParameterStore, RefusesInitialValuesOfTheWrongSize) {
  ParameterStore store(descent(), 16);
  try {
    store.initialise(std::vector<float>(32));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBadConfig);
  }
  EXPECT_FALSE(store.initialised());
}

TEST(ParameterStore, PublishesANewSnapshotAndLeavesTheOldOneAlone) {
  ParameterStore store(descent(), 16);
  store.initialise(std::vector<float>(16, 5));
  const std::shared_ptr<const arena::ParameterVersion> before = store.current();
  store.apply({constantGradient(16, 1), constantGradient(16, 3)});
  EXPECT_EQ(before->data()[15], 5);
  EXPECT_EQ(store.current()->data()[15], 3);
  EXPECT_EQ(store.version(), 1u);
  EXPECT_EQ(store.previous(), before);
  store.dropPrevious();
  EXPECT_EQ(store.previous(), nullptr);
}

cluster::OptimizerSpec adamWithAverage() {
  cluster::OptimizerSpec spec = cluster::defaultOptimizer(cluster::OptimizerSpec::Kind::kAdam);
  spec.moving_average_decay = 0.9;
  return spec;
}

// 3 dense elements, and a table of 8 x 2.
class SparseStore {
 public:
  explicit SparseStore(const cluster::OptimizerSpec& optimizer)
      : store(optimizer, 32, {}, {}, {{16, 8, 2}}) {
    std::vector<float> values(32, 1);
    store.initialise(values);
  }
  arena::Gradient gradient(float dense, const Rows& rows) const {
    return makeGradient(store.gradientLayout(), {dense}, {rows});
  }
  ParameterStore store;
};

TEST(ParameterStore, UpdatesTheRowsThatAreNamed) {
  SparseStore sparse(descent());
  ParameterStore& store = sparse.store;
  store.apply({sparse.gradient(2, {{1, {1, 2}}, {3, {4, 4}}}), sparse.gradient(4, {{3, {2, 2}}})});
  const float* const values = store.current()->data();
  EXPECT_EQ(values[0], -2) << "the mean of two";
  EXPECT_EQ(std::vector<float>(values + 16, values + 32),
            (std::vector<float>{1, 1, 0, -1, 1, 1, -2, -2, 1, 1, 1, 1, 1, 1, 1, 1}));
}

// The mean is sent to a replica, which must get the same bits.
TEST(ParameterStore, TheMeanOfRowsIsAGradientWithTheSameEffect) {
  SparseStore whole(adamWithAverage());
  SparseStore replica(adamWithAverage());
  for (int step = 0; step < 3; ++step) {
    const std::vector<arena::Gradient> gradients = {
        whole.gradient(0.3f, {{0, {0.1f, 0.7f}}, {5, {0.3f, 0.9f}}}),
        whole.gradient(0.1f, {{5, {0.2f, 0.1f}}, {7, {0.6f, 0.5f}}}),
        whole.gradient(0.7f, {{5, {0.4f, 0.3f}}})};
    const std::shared_ptr<UpdateJob> mean = whole.store.prepareMean(gradients);
    mean->run(16, 32);
    mean->run(0, 16);
    const arena::Gradient sent = mean->takeMean();
    EXPECT_EQ(whole.store.gradientLayout().fault(sent), std::nullopt);
    replica.store.apply({sent});
    whole.store.apply(gradients);
  }
  EXPECT_EQ(std::memcmp(whole.store.current()->data(), replica.store.current()->data(),
                        32 * sizeof(float)),
            0);
  for (uint32_t slot = 0; slot < whole.store.slotCount(); ++slot)
    EXPECT_EQ(std::memcmp(whole.store.slot(slot).data(), replica.store.slot(slot).data(),
                          32 * sizeof(float)),
              0);
}

TEST(ParameterStore, ARestoredStoreGoesOnWithTheSameBits) {
  ParameterStore first(adamWithAverage(), 16);
  first.initialise(std::vector<float>(16, 0.5f));
  for (int i = 0; i < 5; ++i) first.apply({constantGradient(16, 0.1f * static_cast<float>(i))});
  ParameterStore second(adamWithAverage(), 16);
  std::vector<std::span<const float>> slots;
  for (uint32_t i = 0; i < first.slotCount(); ++i) slots.push_back(first.slot(i));
  ASSERT_EQ(slots.size(), 3u);
  EXPECT_EQ(first.slotName(2), "ExponentialMovingAverage");
  second.restore({first.current()->data(), 16}, slots, first.clockState(), first.version());
  EXPECT_EQ(second.version(), 5u);
  EXPECT_EQ(second.clockState().applies, 5u);
  for (ParameterStore* store : {&first, &second})
    for (int i = 0; i < 5; ++i) store->apply({constantGradient(16, 0.3f)});
  EXPECT_EQ(first.clockState(), second.clockState());
  EXPECT_EQ(std::memcmp(first.current()->data(), second.current()->data(), 16 * sizeof(float)), 0);
  for (uint32_t i = 0; i < first.slotCount(); ++i)
    EXPECT_TRUE(std::ranges::equal(first.slot(i), second.slot(i))) << first.slotName(i);
}

// The parameters stay in the received buffer until two updates later; the slots' buffer is freed at
// once.
TEST(ParameterStore, WhatWasReceivedIsKeptForAsLongAsItIsInUse) {
  const auto received = [](float value) {
    const auto buffer = std::make_shared<Buffer>(16 * sizeof(float));
    std::fill_n(buffer->as<float>(), 16, value);
    return buffer;
  };
  const auto values = received(5), before = received(4), slot = received(1);
  const auto span = [](const std::shared_ptr<Buffer>& buffer) {
    return std::span<const float>(buffer->as<float>(), 16);
  };
  cluster::OptimizerSpec momentum =
      cluster::defaultOptimizer(cluster::OptimizerSpec::Kind::kMomentum);
  momentum.learning_rate = 1;
  ParameterStore store(momentum, 16);
  const std::span<const float> slots[] = {span(slot)};
  store.restore(span(values), slots, OptimizerClock(momentum).state(), 3, span(before),
                {values, before});
  EXPECT_EQ(store.current()->data(), values->as<float>());
  EXPECT_EQ(store.previous()->data(), before->as<float>());
  store.apply({constantGradient(16, 1)});
  EXPECT_EQ(before.use_count(), 1);
  EXPECT_EQ(values.use_count(), 2);
  EXPECT_EQ(values->as<float>()[0], 5) << "an update writes elsewhere";
  store.apply({constantGradient(16, 1)});
  EXPECT_EQ(values.use_count(), 1);
}

TEST(ParameterStore, RefusesACheckpointThatDoesNotFit) {
  ParameterStore store(adamWithAverage(), 16);
  const std::vector<float> right(16), wrong(32);
  const auto refused = [&](std::span<const float> values,
                           const std::vector<std::span<const float>>& slots) {
    try {
      store.restore(values, slots, {}, 1);
      return false;
    } catch (const Error& error) {
      return error.code() == ErrorCode::kBadData && !store.initialised();
    }
  };
  EXPECT_TRUE(refused(wrong, {right, right, right}));
  EXPECT_TRUE(refused(right, {right, right}));
  EXPECT_TRUE(refused(right, {right, right, wrong}));
  EXPECT_FALSE(refused(right, {right, right, right}));
}

TEST(ParameterStore, SteadyStateUsesABoundedNumberOfArenas) {
  ParameterStore store(descent(), 16);
  store.initialise(std::vector<float>(16));
  std::vector<std::shared_ptr<const arena::ParameterVersion>> readers;
  for (int i = 0; i < 100; ++i) {
    store.apply({constantGradient(16, 1)});
    readers.push_back(store.current());
    if (readers.size() > 4) readers.erase(readers.begin());
  }
  // Four or five arenas of readers (the newest is current and previous), and the unused ones.
  EXPECT_LE(store.arenasAllocated(), 9u);
}

// A table of 1000 x 4 with updates of a few rows at a time, and its expected values.
class LargeTable {
 public:
  static constexpr uint64_t kDense = 16, kRows = 1000, kRowElements = 4;
  static constexpr uint64_t kElements = kDense + kRows * kRowElements;

  LargeTable()
      : store(descent(), kElements, {}, {}, {{kDense, kRows, kRowElements}}), due(kElements, 1) {
    store.initialise(due);
  }
  // Draws gradients of two workers, which may name the same rows.
  std::vector<arena::Gradient> draw() {
    std::vector<arena::Gradient> gradients;
    for (int worker = 0; worker < 2; ++worker) {
      Rows rows;
      for (int i = 0; i < 5; ++i) rows[static_cast<uint32_t>(random_.below(kRows))] = {1, 1, 1, 1};
      gradients.push_back(makeGradient(store.gradientLayout(), {1}, {rows}));
    }
    return gradients;
  }
  void apply() {
    const std::vector<arena::Gradient> gradients = draw();
    due[0] -= 1;
    std::set<uint32_t> named;
    for (const arena::Gradient& gradient : gradients)
      for (const uint32_t row : store.gradientLayout().rows(gradient, 0).rows) named.insert(row);
    for (const uint32_t row : named)
      for (uint64_t i = 0; i < kRowElements; ++i) due[kDense + row * kRowElements + i] -= 1;
    store.apply(gradients);
  }
  bool isRight() const { return std::equal(due.begin(), due.end(), store.current()->data()); }

  ParameterStore store;
  std::vector<float> due;

 private:
  Random random_{testing::testSeed(), 0};
};

// Readers keep arenas for any number of updates; rows that such an arena missed are not lost.
TEST(ParameterStore, RowsThatAnArenaMissedAreBroughtToIt) {
  LargeTable table;
  std::deque<std::pair<std::shared_ptr<const arena::ParameterVersion>, std::vector<float>>> readers;
  Random random(testing::testSeed(), 1);
  for (int step = 0; step < 300; ++step) {
    table.apply();
    ASSERT_TRUE(table.isRight()) << "step " << step << " seed " << testing::testSeed();
    if (random.below(3) == 0) readers.emplace_back(table.store.current(), table.due);
    if (random.below(10) == 0) table.store.copyAverages();
    while (!readers.empty() && random.below(4) == 0) {
      EXPECT_TRUE(std::ranges::equal(readers.front().second,
                                     std::span(readers.front().first->data(), table.kElements)))
          << "what is read doesn't change";
      readers.pop_front();
    }
  }
}

// The test puts other values into an arena: only an update's writes replace them.
TEST(ParameterStore, AnUpdateWritesTheRowsThatWereNamedAndNoOthers) {
  LargeTable table;
  table.apply();
  const float* const arena = table.store.current()->data();
  table.apply();
  table.apply();  // the first arena has no reader any more, and it isn't previous()
  constexpr float kElsewhere = 12345;
  auto* const reused = const_cast<float*>(arena);
  std::fill_n(reused, LargeTable::kElements, kElsewhere);
  table.apply();
  ASSERT_EQ(table.store.current()->data(), arena);
  const std::span<const float> written(arena, LargeTable::kElements);
  EXPECT_EQ(written[0], table.due[0]);
  const auto kept = std::ranges::count(written, kElsewhere);
  constexpr int kNamedMax = 3 * 2 * 5;  // by this update and the two that the arena lacked
  EXPECT_GE(kept, (LargeTable::kRows - kNamedMax) * LargeTable::kRowElements);
  EXPECT_LT(kept, LargeTable::kRows * LargeTable::kRowElements);
}

TEST(ParameterStore, ARestoreLeavesNothingOfTheRowsBefore) {
  LargeTable table;
  for (int step = 0; step < 5; ++step) table.apply();
  table.due.assign(LargeTable::kElements, 7);
  table.store.restore(table.due, {}, OptimizerClock(descent()).state(), 3);
  for (int step = 0; step < 5; ++step) {
    table.apply();
    EXPECT_TRUE(table.isRight()) << "step " << step << " seed " << testing::testSeed();
  }
}

TEST(ParameterStore, APreparedUpdateMayRunInPartsOnOtherThreads) {
  constexpr uint64_t kElements = 40'000;
  ParameterStore store(descent(), kElements);
  store.initialise(std::vector<float>(kElements, 1));
  const std::shared_ptr<UpdateJob> job = store.prepareApply({constantGradient(kElements, 0.25f)});
  std::vector<std::thread> threads;
  for (uint64_t part = 0; part < 4; ++part) {
    threads.emplace_back([job, part] { job->run(part * 10'000, (part + 1) * 10'000); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(store.version(), 0u) << "nothing is published before the commit";
  store.commit(job);
  EXPECT_EQ(store.version(), 1u);
  EXPECT_EQ(store.current()->data()[0], 0.75f);
  EXPECT_EQ(store.current()->data()[kElements - 1], 0.75f);
}

TEST(ParameterStore, CommitReleasesTheGradients) {
  ParameterStore store(descent(), 16);
  store.initialise(std::vector<float>(16));
  arena::Gradient gradient = constantGradient(16, 1);
  const std::weak_ptr<const void> owner = gradient.owner;
  const std::shared_ptr<UpdateJob> job = store.prepareApply({std::move(gradient)});
  job->run(0, 16);
  EXPECT_FALSE(owner.expired());
  store.commit(job);
  EXPECT_TRUE(owner.expired());
}

TEST(ParameterStore, AJobMayOutliveItsStore) {
  std::shared_ptr<UpdateJob> job;
  {
    ParameterStore store(descent(), 16);
    store.initialise(std::vector<float>(16));
    job = store.prepareApply({constantGradient(16, 1)});
  }
  job->run(0, 16);
}

TEST(ParameterStore, AShardMayBeEmpty) {
  ParameterStore store(descent(), 0);
  store.initialise({});
  store.apply({arena::Gradient{}});
  EXPECT_EQ(store.version(), 1u);
}

TEST(ParameterStoreDeathTest, AnUnfinishedUpdateIsNotCommitted) {
  ParameterStore store(descent(), 32);
  store.initialise(std::vector<float>(32));
  const std::shared_ptr<UpdateJob> job = store.prepareApply({constantGradient(32, 1)});
  job->run(0, 16);
  EXPECT_DEATH(store.commit(job), "elements_done_");
}

}  // namespace
}  // namespace dtf::optimizer
