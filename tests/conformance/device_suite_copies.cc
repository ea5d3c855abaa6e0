// Copies between the host and a device's memory.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <string>
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

// A read gives the bytes of the last copy before it, never of a later one.
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

// More small copies than a device may have room for.
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

// A step with memory of its own for the bound values; its parameters change from run to run, as in
// training.
class Trained {
 public:
  Trained(DeviceUnderTest& device, const Classifier& model, TransferOptions transfers)
      : runner_(*device.device, device.kernels, model.graph, model.feeds, fetchesOf(model),
                {.transfers = transfers}) {
    for (const auto& [output, values] : model.feeds) {
      const std::string& name = model.graph.node(output.node).name;
      if (std::ranges::find(model.variables, name) != model.variables.end())
        values_[name].assign(values.begin(), values.end());
    }
    for (const std::string& name : model.variables) gradients_[name].resize(values_[name].size());
  }

  // Returns all outputs of a run, by name.
  std::map<std::string, std::vector<float>> run(float scale) {
    bindAnew(scale);
    runner_.run();
    std::map<std::string, std::vector<float>> made = gradients_;
    made["loss"] = {static_cast<float>(runner_.fetch(0)[0])};
    return made;
  }

  // The same outputs, as they were when the run reported each.
  std::map<std::string, std::vector<float>> hear(float scale) {
    bindAnew(scale);
    Hearing hearing(*this);
    runner_.step().run(&hearing);
    return hearing.made;
  }

 private:
  struct Hearing final : StepListener {
    explicit Hearing(Trained& of) : of(of) {}
    void onFetches() override { made["loss"] = {static_cast<float>(of.runner_.fetch(0)[0])}; }
    void onGradients(std::span<const size_t> gradients) override {
      for (const auto& [name, gradient] : of.gradients_)
        if (std::ranges::count(gradients, static_cast<size_t>(of.runner_.step().gradient(name))) >
            0)
          made[name] = gradient;
    }
    Trained& of;
    std::map<std::string, std::vector<float>> made;
  };

  void bindAnew(float scale) {
    for (auto& [name, values] : values_) {
      for (float& value : values) value *= scale;
      runner_.step().bindParameter(runner_.step().parameter(name), values.data());
    }
    for (auto& [name, gradient] : gradients_) {
      std::ranges::fill(gradient, std::nanf(""));
      runner_.step().bindGradient(runner_.step().gradient(name), gradient.data());
    }
  }

  static std::vector<graph::Output> fetchesOf(const Classifier& model) { return {model.loss}; }

  StepRunner runner_;
  std::map<std::string, std::vector<float>> values_, gradients_;
};

// Weights of 3.2, 4.2 and 2.1 MB, in both directions, beside kernels that read and write others.
TEST_P(DeviceSuite, MovesLayersBesideTheComputation) {
  Random random(4);
  const Classifier model = makeClassifier(random, {.batch = 4, .hidden = {1024, 1024, 512}});
  Trained whole(device_, model, {.beside_bytes = SIZE_MAX});
  Trained pieces(device_, model, {.bucket_bytes = 1 << 20});
  for (const float scale : {1.0f, 0.5f, 1.5f, 0.75f, 1.25f}) {  // one run loads code, one is
                                                                // captured
    const auto expected = whole.run(scale);
    for (const auto& [name, values] : pieces.run(scale))
      EXPECT_TRUE(values == expected.at(name)) << name << " at " << scale;
  }
}

// A gradient is complete when the listener is called, while the rest is computed and copied.
TEST_P(DeviceSuite, TellsOfGradientsAsTheyCome) {
  Random random(5);
  const Classifier model = makeClassifier(random, {.batch = 4, .hidden = {1024, 1024, 512}});
  Trained whole(device_, model, {.beside_bytes = SIZE_MAX});
  Trained told(device_, model, {.bucket_bytes = 1 << 20, .told_bytes = 1 << 20});
  for (const float scale : {1.0f, 0.5f, 1.5f, 0.75f, 1.25f, 0.8f}) {
    const auto expected = whole.run(scale);
    // One of the runs has no listener.
    const auto heard = scale == 0.75f ? told.run(scale) : told.hear(scale);
    EXPECT_EQ(heard.size(), expected.size());
    for (const auto& [name, values] : heard)
      EXPECT_TRUE(values == expected.at(name)) << name << " at " << scale;
  }
}

}  // namespace
}  // namespace dtf::runtime::testing
