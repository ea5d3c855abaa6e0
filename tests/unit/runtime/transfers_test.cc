// How a compiled step copies its bound tensors to and from a device with memory of its own.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "common/runtime/cpu_device.h"
#include "common/runtime/cpu_kernels.h"
#include "tests/unit/runtime/models.h"
#include "tests/unit/runtime/step_runner.h"

namespace dtf::runtime {
namespace {

using graph::Output;
using testing::Classifier;
using ::testing::ElementsAre;
using testing::makeClassifier;
using testing::StepRunner;

// Records the calls that it receives. It makes copies to the host beside launches as late as
// possible.
class NotingDevice final : public Device {
 public:
  DeviceType type() const override { return cpu_.type(); }
  std::string_view name() const override { return "noting:0"; }
  bool usesHostMemory() const override { return false; }
  void copyToDevice(std::byte* to, const std::byte* from, size_t bytes) override {
    note("up");
    cpu_.copyToDevice(to, from, bytes);
  }
  void copyToHost(std::byte* to, const std::byte* from, size_t bytes) override {
    note("down");
    cpu_.copyToHost(to, from, bytes);
  }
  void copyToDeviceBeside(std::byte* to, const std::byte* from, size_t bytes) override {
    note("up beside");
    cpu_.copyToDevice(to, from, bytes);
  }
  void copyToHostBeside(std::byte* to, const std::byte* from, size_t bytes) override {
    note("down beside");
    late_.push_back({to, from, bytes});
  }
  void run(std::span<const Launch> launches) override {
    note("run");
    if (runs_left > 0 && --runs_left == 0)
      throw Error(ErrorCode::kUnavailable, "the device fell off the bus");
    cpu_.run(launches);
  }
  void synchronise() override {
    note("wait");
    for (const Copy& copy : late_) cpu_.copyToHost(copy.to, copy.from, copy.bytes);
    late_.clear();
    if (fails_late) throw Error(ErrorCode::kUnavailable, "it is gone");
  }

  std::vector<std::string> notes;  // equal calls in a row appear once
  int runs_left = 0;               // before one fails; 0: none does
  bool fails_late = false;
  size_t late() const { return late_.size(); }

 private:
  struct Copy {
    std::byte* to;
    const std::byte* from;
    size_t bytes;
  };
  void note(const std::string& what) {
    if (notes.empty() || notes.back() != what) notes.push_back(what);
  }
  std::byte* allocateBytes(size_t bytes) override { return cpu_.allocate(bytes).release(); }
  void freeBytes(std::byte* memory) noexcept override { std::free(memory); }
  CpuDevice cpu_;
  std::vector<Copy> late_;
};

class Transfers : public ::testing::Test {
 protected:
  Transfers() { registerCpuKernels(kernels_); }

  Classifier threeLayers() {
    Random random(1);
    return makeClassifier(random, {.batch = 5, .inputs = 30, .hidden = {20, 20}});
  }

  NotingDevice device_;
  KernelTable kernels_;
};

// The weights are 2400, 1600 and 800 bytes; biases are small.
constexpr TransferOptions kByLayer = {.beside_bytes = 400, .bucket_bytes = 800};

TEST_F(Transfers, LayersMoveWhileOthersAreComputed) {
  const Classifier model = threeLayers();
  StepRunner runner(device_, kernels_, model.graph, model.feeds, std::vector{model.loss},
                    {.transfers = kByLayer});
  device_.notes.clear();
  runner.run();
  EXPECT_THAT(device_.notes, ElementsAre("up", "up beside", "run", "up beside", "run", "up beside",
                                         "run", "down beside", "run", "down beside", "run",
                                         "down beside", "down", "wait"))
      << "forwards a layer is on its way to the device while the one before it is computed, "
         "backwards to the host";
}

TEST_F(Transfers, WhatIsSmallMovesBeforeAndAfterTheWholeStep) {
  const Classifier model = threeLayers();
  StepRunner runner(device_, kernels_, model.graph, model.feeds, std::vector{model.loss});
  device_.notes.clear();
  runner.run();
  EXPECT_THAT(device_.notes, ElementsAre("up", "run", "down", "wait"));
}

TEST_F(Transfers, ParametersThatAreNotBoundAnewStayThere) {
  const Classifier model = threeLayers();
  StepRunner runner(device_, kernels_, model.graph, model.feeds, std::vector{model.loss},
                    {.transfers = kByLayer});
  runner.run();
  device_.notes.clear();
  runner.run();
  EXPECT_THAT(device_.notes, ElementsAre("up", "run", "down beside", "run", "down beside", "run",
                                         "down beside", "down", "wait"));
}

TEST_F(Transfers, TheNumbersAreThoseOfOnePiece) {
  const Classifier model = threeLayers();
  const std::vector<Output> fetches = {model.loss, model.gradients[0]};
  StepRunner whole(device_, kernels_, model.graph, model.feeds, fetches);
  StepRunner pieces(device_, kernels_, model.graph, model.feeds, fetches, {.transfers = kByLayer});
  whole.run();
  for (int repeat = 0; repeat < 2; ++repeat) {
    pieces.run();
    EXPECT_EQ(pieces.fetch(0), whole.fetch(0));
    EXPECT_EQ(pieces.fetch(1), whole.fetch(1));
    for (const std::string& name : model.variables)
      EXPECT_EQ(pieces.gradient(name), whole.gradient(name)) << name;
  }
}

// The caller may free its memory then.
TEST_F(Transfers, AStepThatFailsLeavesNothingOnItsWay) {
  const Classifier model = threeLayers();
  StepRunner runner(device_, kernels_, model.graph, model.feeds, std::vector{model.loss},
                    {.transfers = kByLayer});
  device_.runs_left = 5;
  device_.fails_late = true;
  try {
    runner.run();
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.message(), "the device fell off the bus") << "the first error is the cause";
  }
  EXPECT_EQ(device_.late(), 0u);
  EXPECT_EQ(device_.notes.back(), "wait");
}

}  // namespace
}  // namespace dtf::runtime
