#include "common/runtime/plugin_library.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/gpu/plugin_under_test.h"
#include "tests/unit/runtime/plugin_errors.h"

namespace dtf::runtime {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::hostPlugin;
using testing::testPluginPath;

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

}  // namespace
}  // namespace dtf::runtime
