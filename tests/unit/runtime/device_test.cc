// Behaviour that all devices share.

#include "common/runtime/device.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "common/runtime/cpu_device.h"

namespace dtf::runtime {
namespace {

// Appends its number to a list when it runs.
class NumberedKernel final : public Kernel {
 public:
  NumberedKernel(int number, std::vector<int>& ran) : number_(number), ran_(ran) {}
  void run(const KernelArguments&) override { ran_.push_back(number_); }

 private:
  const int number_;
  std::vector<int>& ran_;
};

class DeviceTest : public ::testing::Test {
 protected:
  CpuDevice device_;
  std::vector<int> ran_;
  NumberedKernel first_{1, ran_}, second_{2, ran_};
  const std::array<Launch, 3> launches_ = {Launch{&first_, {}}, Launch{&second_, {}},
                                           Launch{&first_, {}}};
};

TEST_F(DeviceTest, APreparedProgramRunsItsLaunchesInOrderEachTime) {
  const auto program = device_.prepare(launches_);
  EXPECT_TRUE(ran_.empty()) << "prepared, not run";
  program->run();
  program->run();
  EXPECT_EQ(ran_, (std::vector<int>{1, 2, 1, 1, 2, 1}));
}

TEST_F(DeviceTest, AProfileHasATimeForEachLaunch) {
  const std::vector<double> seconds = device_.prepare(launches_)->profile();
  ASSERT_EQ(seconds.size(), launches_.size());
  for (const double each : seconds) EXPECT_GE(each, 0);
  EXPECT_EQ(ran_, (std::vector<int>{1, 2, 1}));
  EXPECT_FALSE(device_.prepare(launches_)->deviceSeconds()) << "only the host's clock is known";
}

TEST_F(DeviceTest, MemoryIsPaddedZeroedAndGivenBack) {
  const DeviceMemory memory = device_.allocate(1);
  for (int i = 0; i < 64; ++i) EXPECT_EQ(memory[static_cast<size_t>(i)], std::byte{0}) << i;
  EXPECT_NE(device_.allocate(0), nullptr);
}

using DeviceDeathTest = DeviceTest;

TEST_F(DeviceDeathTest, ADeviceWithoutPeersCopiesFromNone) {
  CpuDevice other;
  std::byte byte{};
  EXPECT_DEATH(device_.copyFromPeer(&byte, other, &byte, 1), "can't copy from");
}

}  // namespace
}  // namespace dtf::runtime
