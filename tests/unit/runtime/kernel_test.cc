#include "common/runtime/kernel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/error.h"

namespace dtf::runtime {
namespace {

class NoKernel final : public Kernel {
 public:
  void run(const KernelArguments&) override {}
};

KernelFactory noKernel() {
  return [](const Operation&) { return std::make_unique<NoKernel>(); };
}

TEST(KernelTable, TellsDevicesApart) {
  KernelTable table;
  table.add("Relu", DeviceType::kCpu, noKernel());
  EXPECT_TRUE(table.has("Relu", DeviceType::kCpu));
  EXPECT_FALSE(table.has("Relu", DeviceType::kGpu));
  EXPECT_THAT(table.ops(DeviceType::kCpu), ::testing::ElementsAre("Relu"));
}

TEST(KernelTable, NamesTheNodeThatHasNoKernel) {
  const KernelTable table;
  Operation operation;
  operation.name = "layer/relu";
  operation.op = "Relu";
  try {
    table.make(operation, DeviceType::kGpu);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBadConfig);
    EXPECT_THAT(error.message(),
                ::testing::HasSubstr("no GPU kernel for the op Relu of node 'layer/relu'"));
  }
}

TEST(KernelTableDeathTest, RefusesASecondKernelForAnOp) {
  KernelTable table;
  table.add("Relu", DeviceType::kCpu, noKernel());
  EXPECT_DEATH(table.add("Relu", DeviceType::kCpu, noKernel()), "Relu");
}

TEST(Operation, FallsBackWhereAnAttributeIsAbsent) {
  Operation operation;
  operation.attributes["transpose_a"] = true;
  EXPECT_TRUE(operation.attributeOr<bool>("transpose_a", false));
  EXPECT_FALSE(operation.attributeOr<bool>("transpose_b", false));
}

}  // namespace
}  // namespace dtf::runtime
