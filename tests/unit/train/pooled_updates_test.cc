#include "common/train/pooled_updates.h"

#include <gtest/gtest.h>

#include <cstring>
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

// What three updates make of some parameters.
std::vector<float> updatedParameters(Optimizer kind, uint64_t elements, ps::UpdateRunner& runner) {
  ps::ParameterStore store(cluster::defaultOptimizer(kind), elements, {{.count = elements}});
  store.initialise(drawnValues(elements, 0));
  for (uint64_t step = 1; step <= 3; ++step) {
    auto gradient = std::make_shared<std::vector<float>>(drawnValues(elements, step));
    const auto job = store.prepareApply({{*gradient, gradient}});
    bool done = false;
    runner.start(job, [&] { done = true; });
    EXPECT_TRUE(done) << "before start() returns";
    store.commit(job);
  }
  const float* const values = store.current()->data();
  return {values, values + elements};
}

TEST(PooledUpdates, HasTheBitsOfOneThreadWhateverTheSplit) {
  ps::InlineUpdateRunner in_place;
  for (const Optimizer kind : {Optimizer::kGradientDescent, Optimizer::kAdam, Optimizer::kLamb})
    for (const uint64_t elements :
         {uint64_t{16}, uint64_t{8192}, uint64_t{100'000}, uint64_t{1'000'000}}) {
      const std::vector<float> due = updatedParameters(kind, elements, in_place);
      for (const int threads : {1, 2, 3}) {
        runtime::ComputePool pool(threads);
        PooledUpdates pooled(pool);
        EXPECT_EQ(updatedParameters(kind, elements, pooled), due)
            << threads << " threads, " << elements;
      }
    }
}

// The pool computes a step meanwhile: as a checkpoint does, its part has to run without it.
TEST(PooledUpdates, AnotherThreadDoesNotTouchThePool) {
  runtime::ComputePool pool(2);
  PooledUpdates pooled(pool);
  std::vector<float> elsewhere;
  pool.run(1, [&](int, int) {
    std::thread([&] { elsewhere = updatedParameters(Optimizer::kAdam, 1'000'000, pooled); }).join();
  });
  ps::InlineUpdateRunner in_place;
  EXPECT_EQ(elsewhere, updatedParameters(Optimizer::kAdam, 1'000'000, in_place));
}

}  // namespace
}  // namespace dtf::train
