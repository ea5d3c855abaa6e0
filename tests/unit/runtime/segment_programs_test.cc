// When a listener learns of a step's results.

#include "common/runtime/segment_programs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "common/runtime/cpu_device.h"
#include "common/runtime/cpu_kernels.h"
#include "tests/unit/runtime/models.h"
#include "tests/unit/runtime/step_runner.h"

namespace dtf::runtime {
namespace {

using graph::testing::Values;
using testing::Classifier;
using testing::makeClassifier;
using testing::StepRunner;

// A CPU that claims memory of its own. It makes copies beside launches when they are waited for,
// and not before.
class FarDevice final : public Device {
 public:
  DeviceType type() const override { return cpu_.type(); }
  std::string_view name() const override { return "far:0"; }
  bool usesHostMemory() const override { return false; }
  void copyToDevice(std::byte* to, const std::byte* from, size_t bytes) override {
    cpu_.copyToDevice(to, from, bytes);
  }
  void copyToHost(std::byte* to, const std::byte* from, size_t bytes) override {
    cpu_.copyToHost(to, from, bytes);
  }
  void copyToHostBeside(std::byte* to, const std::byte* from, size_t bytes) override {
    late_.push_back({to, from, bytes});
  }
  void awaitHost(size_t copies) override {
    ASSERT_LE(copies, late_.size());
    for (; made_ < copies; ++made_)
      cpu_.copyToHost(late_[made_].to, late_[made_].from, late_[made_].bytes);
  }
  void run(std::span<const Launch> launches) override { cpu_.run(launches); }
  void synchronise() override {
    awaitHost(late_.size());
    late_.clear();
    made_ = 0;
  }

 private:
  struct Copy {
    std::byte* to;
    const std::byte* from;
    size_t bytes;
  };
  std::vector<Copy> late_;
  size_t made_ = 0;
  std::byte* allocateBytes(size_t bytes) override { return cpu_.allocate(bytes).release(); }
  void freeBytes(std::byte* memory) noexcept override { std::free(memory); }
  CpuDevice cpu_;
};

// Records the calls that it receives, and the results that they report.
class Noting final : public StepListener {
 public:
  Noting(StepRunner& runner, const std::vector<std::string>& variables)
      : runner_(runner), variables_(variables) {}
  void onFetches() override {
    heard.push_back("loss");
    loss = runner_.fetch(0).at(0);
  }
  void onGradients(std::span<const size_t> gradients) override {
    std::string names;
    for (const size_t gradient : gradients) {
      const std::string& name = *std::ranges::find_if(variables_, [&](const std::string& variable) {
        return runner_.step().gradient(variable) == static_cast<int>(gradient);
      });
      names += (names.empty() ? "" : " ") + name;
      EXPECT_TRUE(made.emplace(name, runner_.gradient(name)).second) << "each once";
    }
    heard.push_back(names);
    unwritten.push_back(std::ranges::count_if(variables_, [&](const std::string& variable) {
      return std::isnan(runner_.gradient(variable).back());
    }));
  }

  std::vector<std::string> heard;
  std::map<std::string, Values> made;  // the values at the time of the call
  std::vector<ptrdiff_t> unwritten;    // variables, at each call
  double loss = NAN;

 private:
  StepRunner& runner_;
  const std::vector<std::string>& variables_;
};

class SegmentPrograms : public ::testing::Test {
 protected:
  SegmentPrograms() { registerCpuKernels(kernels_); }

  // Runs the step once; gradients are NaN before.
  Noting hearFrom(Device& device, size_t told_bytes) {
    StepRunner runner(device, kernels_, model_.graph, model_.feeds, std::vector{model_.loss},
                      {.transfers = {.told_bytes = told_bytes}});
    Noting noting(runner, model_.variables);
    runner.step().run(&noting);
    EXPECT_EQ(noting.loss, runner.fetch(0).at(0));
    EXPECT_EQ(noting.made.size(), model_.variables.size());
    for (const auto& [name, values] : noting.made)
      EXPECT_EQ(runner.gradient(name), values) << name << " has changed since";
    return noting;
  }

  CpuDevice device_;
  KernelTable kernels_;
  Random random_{1};
  // Weights of 2400, 1600, 1600 and 800 bytes; biases are small.
  const Classifier model_ =
      makeClassifier(random_, {.batch = 5, .inputs = 30, .hidden = {20, 20, 20}});
};

TEST_F(SegmentPrograms, TheLossIsHeardOfFirstAndThenTheGradientsOfTheLastLayer) {
  const Noting noting = hearFrom(device_, 800);
  ASSERT_EQ(noting.heard.size(), 5u) << ::testing::PrintToString(noting.heard);
  EXPECT_EQ(noting.heard[0], "loss");
  for (const int layer : {3, 2, 1, 0})
    EXPECT_NE(noting.heard[4 - static_cast<size_t>(layer)].find("w" + std::to_string(layer)),
              std::string::npos)
        << ::testing::PrintToString(noting.heard);
  EXPECT_GE(noting.unwritten[0], 6) << "those of the layers before aren't made yet";
  EXPECT_EQ(noting.unwritten.back(), 0);
}

TEST_F(SegmentPrograms, ABucketIsHeardOfAtOnce) {
  const auto hear = [this](size_t bytes) { return hearFrom(device_, bytes).heard; };
  EXPECT_EQ(hear(1 << 20), (std::vector<std::string>{"loss", "w3 b3", "b2 w2 b1 w1 b0 w0"}));
  EXPECT_EQ(hear(3000), (std::vector<std::string>{"loss", "w3 b3", "b2 w2 b1 w1", "b0 w0"}));
}

TEST_F(SegmentPrograms, WhoIsNotToldEarlyIsToldAtTheEnd) {
  FarDevice far;
  for (Device* device : std::initializer_list<Device*>{&device_, &far}) {
    const Noting noting = hearFrom(*device, 0);
    EXPECT_EQ(noting.heard.size(), 2u);
    EXPECT_EQ(noting.unwritten, std::vector<ptrdiff_t>{0});
  }
}

// Small gradients, too: a step here is one bucket, and the loss divides it into two segments.
TEST_F(SegmentPrograms, FromADeviceWithMemoryOfItsOwnTheyAreHeardOfAsTheyCome) {
  FarDevice far;
  const Noting noting = hearFrom(far, 1);
  EXPECT_EQ(noting.heard, (std::vector<std::string>{"loss", "w3 b3", "b2 w2 b1 w1 b0 w0"}));
  EXPECT_EQ(noting.unwritten, (std::vector<ptrdiff_t>{6, 0}));
  EXPECT_EQ(noting.made, hearFrom(device_, 0).made);
}

TEST_F(SegmentPrograms, HowManyThereAreDoesNotChangeABit) {
  const Noting one = hearFrom(device_, 0), many = hearFrom(device_, 1);
  EXPECT_EQ(many.loss, one.loss);
  EXPECT_EQ(many.made, one.made);
}

}  // namespace
}  // namespace dtf::runtime
