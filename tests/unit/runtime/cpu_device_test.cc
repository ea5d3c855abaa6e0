#include "common/runtime/cpu_device.h"

#include <gtest/gtest.h>

#include <cstring>
#include <thread>

#include "common/base/error.h"
#include "common/base/trace.h"

namespace dtf::runtime {
namespace {

TEST(CpuDevice, AllocatesZeroedAlignedMemory) {
  CpuDevice device;
  for (const size_t bytes : {0, 1, 63, 64, 1000}) {
    const DeviceMemory memory = device.allocate(bytes);
    ASSERT_NE(memory.get(), nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory.get()) % 64, 0u);
    for (size_t i = 0; i < bytes; ++i) ASSERT_EQ(memory[i], std::byte{0});
  }
}

TEST(CpuDevice, SaysWhenThereIsNoMemory) {
  CpuDevice device;
  try {
    device.allocate(size_t{1} << 60);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
  }
}

TEST(CpuDevice, Copies) {
  CpuDevice device;
  const DeviceMemory memory = device.allocate(4);
  device.copyToDevice(memory.get(), reinterpret_cast<const std::byte*>("abc"), 4);
  char back[4];
  device.copyToHost(reinterpret_cast<std::byte*>(back), memory.get(), 4);
  EXPECT_STREQ(back, "abc");
}

class NoteThread final : public Kernel {
 public:
  void run(const KernelArguments& arguments) override {
    ran_in = std::this_thread::get_id();
    order = arguments.workspace;
  }
  std::thread::id ran_in;
  std::byte* order = nullptr;
};

TEST(CpuDevice, RunsLaunchesInTheCallingThread) {
  CpuDevice device(3);
  EXPECT_EQ(device.name(), "cpu:3");
  NoteThread kernel;
  std::byte workspace[2];
  const Launch launches[] = {{&kernel, {{}, {}, workspace}}, {&kernel, {{}, {}, workspace + 1}}};
  device.run(launches);
  device.synchronise();
  EXPECT_EQ(kernel.ran_in, std::this_thread::get_id());
  EXPECT_EQ(kernel.order, workspace + 1);
}

TEST(CpuDevice, TheTimelineNamesItsLaunches) {
  CpuDevice device;
  NoteThread kernel;
  const std::string name = "Relu hidden/Relu";
  const Launch launches[] = {{&kernel, {}, &name}, {&kernel, {}}};
  trace::start({JobKind::kWorker, 0}, 7);
  device.run(launches);
  EXPECT_EQ(trace::json().find(name), std::string::npos) << "of another step";
  trace::onStep(7);
  device.run(launches);
  EXPECT_NE(trace::json().find(name), std::string::npos);
  trace::stop();
}

}  // namespace
}  // namespace dtf::runtime
