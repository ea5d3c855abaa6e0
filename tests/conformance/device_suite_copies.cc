// Copies between the host and a device's memory.

#include <cstring>
#include <vector>

#include "common/base/random.h"
#include "tests/conformance/device_suite.h"
#include "tests/unit/runtime/models.h"
#include "tests/unit/runtime/step_runner.h"

namespace dtf::runtime::testing {
namespace {

std::vector<std::byte> randomBytes(Random& random, size_t bytes) {
  std::vector<std::byte> made(bytes);
  for (size_t i = 0; i < bytes; i += 61) made[i] = static_cast<std::byte>(random.below(256));
  return made;
}

TEST_P(DeviceSuite, CopiesWhatIsSmallAndWhatIsLarge) {
  Random random(1);
  for (const size_t bytes : {1UL, 63UL, 64UL << 10, (64UL << 10) + 1, 4UL << 20, (9UL << 20) + 5}) {
    const DeviceMemory memory = device_.device->allocate(bytes);
    for (int repeat = 0; repeat < 3; ++repeat) {
      const std::vector<std::byte> sent = randomBytes(random, bytes);
      std::vector<std::byte> back(bytes);
      device_.device->copyToDevice(memory.get(), sent.data(), bytes);
      device_.device->copyToHost(back.data(), memory.get(), bytes);
      device_.device->synchronise();
      EXPECT_EQ(std::memcmp(back.data(), sent.data(), bytes), 0) << bytes << " bytes";
    }
  }
}

// The last one that was sent is there, and what was read before it was sent is what was there before.
TEST_P(DeviceSuite, CopiesOneAfterTheOther) {
  constexpr size_t kBytes = (6UL << 20) + 3;
  Random random(2);
  const DeviceMemory memory = device_.device->allocate(kBytes);
  const std::vector<std::byte> first = randomBytes(random, kBytes),
                               second = randomBytes(random, kBytes);
  std::vector<std::byte> between(kBytes), small(7), last(kBytes);
  device_.device->copyToDevice(memory.get(), second.data(), kBytes);
  device_.device->copyToDevice(memory.get(), first.data(), kBytes);
  device_.device->copyToHost(between.data(), memory.get(), kBytes);
  device_.device->copyToDevice(memory.get(), second.data(), kBytes);
  device_.device->copyToHost(small.data(), memory.get(), small.size());
  device_.device->copyToHost(last.data(), memory.get(), kBytes);
  device_.device->synchronise();
  EXPECT_EQ(std::memcmp(between.data(), first.data(), kBytes), 0);
  EXPECT_EQ(std::memcmp(small.data(), second.data(), small.size()), 0);
  EXPECT_EQ(std::memcmp(last.data(), second.data(), kBytes), 0);
}

// More small ones than a device may have room for.
TEST_P(DeviceSuite, CopiesManySmallOnes) {
  constexpr size_t kEach = 40'000, kCount = 300;
  Random random(3);
  const DeviceMemory memory = device_.device->allocate(kEach * kCount);
  const std::vector<std::byte> sent = randomBytes(random, kEach * kCount);
  std::vector<std::byte> back(kEach * kCount);
  for (size_t i = 0; i < kCount; ++i)
    device_.device->copyToDevice(memory.get() + i * kEach, sent.data() + i * kEach, kEach);
  for (size_t i = 0; i < kCount; ++i)
    device_.device->copyToHost(back.data() + i * kEach, memory.get() + i * kEach, kEach);
  device_.device->synchronise();
  EXPECT_EQ(back, sent);
}

// Weights of 3.2, 4.2 and 2.1 MB, in both directions, beside kernels that read and write others.
TEST_P(DeviceSuite, MovesLayersBesideTheComputation) {
  Random random(4);
  const Classifier model = makeClassifier(random, {.batch = 4, .hidden = {1024, 1024, 512}});
  const std::vector<graph::Output> fetches = {model.loss};
  const auto runnerOf = [&](TransferOptions transfers) {
    return StepRunner(*device_.device, device_.kernels, model.graph, model.feeds, fetches,
                      {.transfers = transfers});
  };
  StepRunner whole = runnerOf({.beside_bytes = SIZE_MAX});
  whole.run();
  for (int repeat = 0; repeat < 3; ++repeat) {
    StepRunner pieces = runnerOf({.bucket_bytes = 1 << 20});
    for (int run = 0; run < 3; ++run) {  // one loads code, one is captured
      pieces.run();
      EXPECT_EQ(pieces.fetch(0), whole.fetch(0));
      for (const std::string& name : model.variables)
        EXPECT_EQ(pieces.gradient(name), whole.gradient(name)) << name << " in run " << run;
    }
  }
}

}  // namespace
}  // namespace dtf::runtime::testing
