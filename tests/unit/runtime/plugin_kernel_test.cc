#include "common/runtime/plugin_kernel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/gpu/plugin_under_test.h"
#include "tests/unit/runtime/plugin_errors.h"

namespace dtf::runtime {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::hostPlugin;

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
