#include "common/runtime/plugin_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "tests/gpu/plugin_under_test.h"
#include "tests/unit/runtime/plugin_errors.h"

namespace dtf::runtime {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::hostPlugin;

TEST(PluginDeviceTest, SaysHowManyDevicesThereAre) {
  const Error second = errorOf([] { PluginDevice device(hostPlugin(), 1); });
  EXPECT_EQ(second.code(), ErrorCode::kUnavailable);
  EXPECT_THAT(second.message(), HasSubstr("no device gpu:1: this host has gpu:0 alone"));
  const ScopedEnv env("DTF_TEST_HOST_DEVICES", "0");
  const Error none = errorOf([] { PluginDevice device(hostPlugin(), 0); });
  EXPECT_THAT(none.message(), AllOf(HasSubstr("no GPU that can be used (the test wants none)"),
                                    HasSubstr("host_plugin.so")));
}

TEST(PluginDeviceTest, CopiesThereAndBack) {
  PluginDevice device(hostPlugin(), 0);
  EXPECT_EQ(device.name(), "gpu:0");
  EXPECT_EQ(device.description(), "host 0");
  const DeviceMemory memory = device.allocate(8);
  const std::array<std::byte, 8> sent = {std::byte{1}, std::byte{2}};
  std::array<std::byte, 8> back = {};
  device.copyToHost(back.data(), memory.get(), 8);
  device.synchronise();
  EXPECT_EQ(back, (std::array<std::byte, 8>{}));  // it begins as zeros
  device.copyToDevice(memory.get(), sent.data(), 8);
  device.copyToHost(back.data(), memory.get(), 8);
  device.synchronise();
  EXPECT_EQ(back, sent);
  EXPECT_NE(device.allocate(0), nullptr);
}

}  // namespace
}  // namespace dtf::runtime
