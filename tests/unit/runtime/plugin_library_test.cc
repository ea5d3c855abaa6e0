#include "common/runtime/plugin_library.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/error.h"
#include "common/runtime/plugin_device.h"
#include "tests/gpu/plugin_under_test.h"

namespace dtf::runtime {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::hostPlugin;
using testing::testPluginPath;

// Sets a variable of the environment for a test.
class ScopedEnv {
 public:
  ScopedEnv(const char* name, const char* value) : name_(name) { ::setenv(name, value, 1); }
  ~ScopedEnv() { ::unsetenv(name_); }

 private:
  const char* const name_;
};

template <class F>
Error errorOf(const F& f) {
  try {
    f();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "no error";
  return {ErrorCode::kInternal, ""};
}

TEST(PluginLibraryTest, SaysWhatItIsAndRegistersItsOps) {
  EXPECT_EQ(hostPlugin()->backend(), "the host, for tests");
  KernelTable table;
  registerPluginKernels(table, hostPlugin());
  EXPECT_TRUE(table.has("MatMul", DeviceType::kGpu));
  EXPECT_FALSE(table.has("MatMul", DeviceType::kCpu));
  registerPluginKernels(table, hostPlugin());  // a second device of it adds nothing
}

TEST(PluginLibraryTest, NamesTheFileThatIsMissing) {
  const Error error = errorOf([] { PluginLibrary library("/nowhere/libdtf_gpu.so"); });
  EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
  EXPECT_THAT(error.message(),
              AllOf(HasSubstr("/nowhere/libdtf_gpu.so"), HasSubstr("LD_LIBRARY_PATH")));
}

TEST(PluginLibraryTest, RefusesALibraryThatIsNone) {
  const Error error = errorOf([] { PluginLibrary library(testPluginPath("empty")); });
  EXPECT_THAT(error.message(), HasSubstr("is no device plug-in of dtf"));
}

TEST(PluginLibraryTest, RefusesAnotherVersionOfTheBoundary) {
  const Error error = errorOf([] { PluginLibrary library(testPluginPath("wrong")); });
  EXPECT_THAT(error.message(),
              AllOf(HasSubstr("version " + std::to_string(DTF_DEVICE_PLUGIN_VERSION + 1)),
                    HasSubstr("from one version of dtf")));
}

TEST(PluginLibraryTest, LooksWhereTheEnvironmentSaysAndNowhereElse) {
  const ScopedEnv env("DTF_GPU_PLUGIN", "/nowhere/mine.so");
  EXPECT_EQ(gpuPluginPaths(), std::vector<std::string>{"/nowhere/mine.so"});
  const Error error = errorOf([] { (void)gpuPlugin(); });
  EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
  EXPECT_THAT(error.message(), AllOf(HasSubstr("/nowhere/mine.so"), HasSubstr("-Dcuda=enabled")));
}

TEST(PluginLibraryTest, LooksBesideTheProgramAndWhereItIsInstalled) {
  const std::vector<std::string> paths = gpuPluginPaths();
  EXPECT_THAT(paths, ::testing::Contains(::testing::EndsWith("/gpu/libdtf_gpu.so")));
  EXPECT_THAT(paths, ::testing::Contains(::testing::EndsWith("/lib/dtf/libdtf_gpu.so")));
}

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

TEST(PluginKernelTest, NamesTheNodeThatItCannotCompute) {
  KernelTable table;
  registerPluginKernels(table, hostPlugin());
  Operation operation;
  operation.name = "far";
  operation.op = "Slice";
  const Shape whole{3, 3, 3, 3, 3, 3, 3, 3, 3}, part{2, 2, 2, 2, 2, 2, 2, 2, 2};
  operation.input_specs = {{DType::kFloat32, whole}};
  operation.output_specs = {{DType::kFloat32, part}};
  operation.attributes = {{"begin", Shape{0, 0, 0, 0, 0, 0, 0, 0, 0}}, {"size", part}};
  const Error error = errorOf([&] { (void)table.make(operation, DeviceType::kGpu); });
  EXPECT_EQ(error.code(), ErrorCode::kBadConfig);
  EXPECT_THAT(error.message(), AllOf(HasSubstr("'far'"), HasSubstr("8 dimensions")));
}

}  // namespace
}  // namespace dtf::runtime
