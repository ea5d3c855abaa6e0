// The device is the plug-in of tests/gpu, in the host's memory. device_variables_test.cc has whole
// trainings.

#include "common/train/device_arena.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "common/train/worker_devices.h"
#include "tests/gpu/plugin_under_test.h"

namespace dtf::train {
namespace {

using cluster::OptimizerSpec;

class DeviceArenaTest : public ::testing::Test {
 protected:
  DeviceArenaTest() {
    ::setenv("DTF_GPU_PLUGIN", runtime::testing::testPluginPath("host").c_str(), 1);
    ::setenv("DTF_TEST_HOST_DEVICES", "2", 1);
    optimizer_.kind = OptimizerSpec::Kind::kMomentum;
    optimizer_.momentum = 0.5;
  }
  ~DeviceArenaTest() override {
    ::unsetenv("DTF_GPU_PLUGIN");
    ::unsetenv("DTF_TEST_HOST_DEVICES");
  }
  // One arena for each tower, with parameters of 1 and slots of 2.
  DeviceArenas arenas(const WorkerDevices& devices) {
    DeviceArenas all;
    const auto towers = static_cast<uint32_t>(devices.towers().each.size());
    for (uint32_t i = 0; i < towers; ++i) {
      all.push_back(
          std::make_unique<DeviceArena>(layout_, optimizer_, devices.towers().each[i], i, towers));
      const std::vector<float> parameters(elements(), 1), slot(elements(), 2);
      const std::span<const float> slots[] = {slot};
      all.back()->write(parameters, slots);
    }
    return all;
  }
  uint64_t elements() const { return layout_.shards[0].elements; }
  std::vector<float> parametersOf(DeviceArena& arena) const {
    std::vector<float> values(elements());
    arena.readParameters(values.data());
    return values;
  }
  std::vector<float> slotOf(DeviceArena& arena) const {
    std::vector<float> values(elements(), -1);
    arena.readSlot(0, values.data());
    return values;
  }

  const arena::ParameterLayout layout_ = arena::makeLayout({{"w", {1024}, {{0, 0, 1024}}}}, 1);
  OptimizerSpec optimizer_;
};

TEST_F(DeviceArenaTest, WhatIsWrittenIsRead) {
  const WorkerDevices devices({"gpu:0"}, 1, runtime::tableRule());
  const DeviceArenas all = arenas(devices);
  EXPECT_EQ(parametersOf(*all[0]), std::vector<float>(elements(), 1));
  EXPECT_EQ(slotOf(*all[0]), std::vector<float>(elements(), 2));
  std::vector<float> gradients(elements(), 7);
  all[0]->readGradients(gradients.data());
  EXPECT_EQ(gradients, std::vector<float>(elements(), 0)) << "nothing is computed yet";
  EXPECT_FALSE(all[0]->kept().empty());
}

// With gradients of 0 each update halves the momentum.
TEST_F(DeviceArenaTest, AnUpdateIsThatOfTheOptimizer) {
  const WorkerDevices devices({"gpu:0"}, 1, runtime::tableRule());
  const DeviceArenas all = arenas(devices);
  all[0]->update({.learning_rate = 0.25F});
  all[0]->wait();
  EXPECT_EQ(slotOf(*all[0]), std::vector<float>(elements(), 1));
  EXPECT_EQ(parametersOf(*all[0]), std::vector<float>(elements(), 0.75F));
}

TEST_F(DeviceArenaTest, OfTwoTowersEachUpdatesHalfAndTakesTheOthers) {
  const WorkerDevices devices({"gpu:0", "gpu:1"}, 2, runtime::tableRule());
  const DeviceArenas all = arenas(devices);
  for (const auto& arena : all) arena->takeMean(all);
  for (const auto& arena : all) arena->update({.learning_rate = 0.25F});
  for (const auto& arena : all) arena->wait();
  std::vector<float> slot(elements(), -1);
  all[0]->readSlot(0, slot.data());
  EXPECT_EQ(slot.front(), 1);
  EXPECT_EQ(slot.back(), -1) << "the other keeps that half";
  EXPECT_EQ(parametersOf(*all[0]).back(), 1) << "and has updated it";
  for (const auto& arena : all) arena->takeParameters(all);
  for (const auto& arena : all) {
    arena->wait();
    EXPECT_EQ(parametersOf(*arena), std::vector<float>(elements(), 0.75F));
  }
}

TEST_F(DeviceArenaTest, AnInspectionFindsTheNormOfWhatIsTrained) {
  optimizer_.clip_by_global_norm = 1;
  const WorkerDevices devices({"gpu:0"}, 1, runtime::tableRule());
  const DeviceArenas all = arenas(devices);
  all[0]->startInspection();
  const DeviceArena::Findings found = all[0]->finishInspection();
  EXPECT_TRUE(found.statistics_are_finite);
  EXPECT_EQ(found.norm, 0);
}

}  // namespace
}  // namespace dtf::train
