#include "common/train/pooled_updates.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "common/base/random.h"
#include "tests/support/test_seed.h"

namespace dtf::train {
namespace {

using Optimizer = cluster::OptimizerSpec::Kind;

std::vector<float> drawnValues(uint64_t elements, uint64_t stream) {
  std::vector<float> values(elements);
  Random random(testing::testSeed(), stream);
  for (float& value : values) value = random.uniform(-1, 1);
  return values;
}

std::vector<uint32_t> bitsOf(const float* values, uint64_t elements) {
  std::vector<uint32_t> bits(elements);
  std::transform(values, values + elements, bits.begin(), std::bit_cast<uint32_t, float>);
  return bits;
}

void runToTheEnd(optimizer::UpdateRunner& runner,
                 const std::shared_ptr<optimizer::UpdateJob>& job) {
  bool done = false;
  runner.start(job, [&done] { done = true; });
  EXPECT_TRUE(done) << "before start() returns";
}

arena::Gradient drawnGradient(uint64_t elements, uint64_t stream) {
  auto values = std::make_shared<std::vector<float>>(drawnValues(elements, stream));
  return {*values, values};
}

// Returns the bits of the parameters after three updates, with a mean and a copy of the slots, if
// any.
std::vector<uint32_t> updatedBits(Optimizer kind, uint64_t elements,
                                  optimizer::UpdateRunner& runner) {
  optimizer::ParameterStore store(cluster::defaultOptimizer(kind), elements, {{.count = elements}});
  store.initialise(drawnValues(elements, 0));
  for (uint64_t step = 1; step <= 3; ++step) {
    const auto job = store.prepareApply({drawnGradient(elements, step)});
    runToTheEnd(runner, job);
    store.commit(job);
  }
  std::vector<uint32_t> bits = bitsOf(store.current()->data(), elements);
  const auto add = [&](const float* values) {
    const std::vector<uint32_t> more = bitsOf(values, elements);
    bits.insert(bits.end(), more.begin(), more.end());
  };
  const auto mean = store.prepareMean({drawnGradient(elements, 4), drawnGradient(elements, 5)});
  runToTheEnd(runner, mean);
  add(mean->takeMean().values.data());
  if (store.slotCount() == 0) return bits;
  const auto copy = store.prepareCopy();
  runToTheEnd(runner, copy);
  for (const Buffer& slot : copy->takeCopies()) add(slot.as<float>());
  return bits;
}

TEST(PooledUpdates, HasTheBitsOfOneThreadWhateverTheSplit) {
  optimizer::InlineUpdateRunner in_place;
  for (const Optimizer kind : {Optimizer::kGradientDescent, Optimizer::kAdam, Optimizer::kLamb})
    for (const uint64_t elements :
         {uint64_t{16}, uint64_t{8192}, uint64_t{100'000}, uint64_t{1'000'000}}) {
      const std::vector<uint32_t> due = updatedBits(kind, elements, in_place);
      for (const int threads : {1, 2, 3}) {
        runtime::ComputePool pool(threads);
        PooledUpdates pooled(pool);
        EXPECT_EQ(updatedBits(kind, elements, pooled), due) << threads << " threads, " << elements;
      }
    }
}

TEST(PooledUpdatesDeathTest, ALargeUpdateTakesThePool) {
  const auto update = [](uint64_t elements) {
    runtime::ComputePool pool(2);
    PooledUpdates pooled(pool);
    pool.run(1, [&](int, int) { updatedBits(Optimizer::kAdam, elements, pooled); });
  };
  update(4096);  // too small for another thread
  EXPECT_DEATH(update(1'000'000), "two callers of one pool");
}

// The pool computes a step meanwhile. A checkpoint updates in the same way: its part has to run
// without the pool.
TEST(PooledUpdates, AnotherThreadDoesNotTouchThePool) {
  runtime::ComputePool pool(2);
  PooledUpdates pooled(pool);
  std::vector<uint32_t> elsewhere;
  pool.run(1, [&](int, int) {
    std::thread([&] { elsewhere = updatedBits(Optimizer::kAdam, 1'000'000, pooled); }).join();
  });
  optimizer::InlineUpdateRunner in_place;
  EXPECT_EQ(elsewhere, updatedBits(Optimizer::kAdam, 1'000'000, in_place));
}

}  // namespace
}  // namespace dtf::train
