// Which products are fused, and which must not be. The device suite tests the results.

#include <gmock/gmock.h>

#include <array>
#include <map>
#include <vector>

#include "common/graph/autodiff.h"
#include "common/graph/builder.h"
#include "common/graph/op_def.h"
#include "common/runtime/fusion.h"

namespace dtf::runtime {
namespace {

using graph::Output;
using ::testing::UnorderedElementsAre;

class FuseProductsTest : public ::testing::Test {
 protected:
  FuseProductsTest() {
    kernels_.add(std::string(kFusedMatMulOp), DeviceType::kGpu, nullptr);  // no kernel is made
  }
  std::vector<std::string> fusedOps(std::vector<Output> fetches) {
    step_ = lower(graph_, fetches);
    fuseProducts(step_, kernels_, DeviceType::kGpu);
    std::vector<std::string> ops;
    for (const Operation& operation : step_.operations) ops.push_back(operation.op);
    return ops;
  }
  const Operation& only(std::string_view op) const {
    const auto at = std::ranges::find(step_.operations, op, &Operation::op);
    EXPECT_NE(at, step_.operations.end()) << op;
    return *at;
  }

  graph::Graph graph_{graph::standardOps()};
  graph::Builder b{graph_};
  const Output x = b.placeholder("x", DType::kFloat32, {5, 6});
  const Output w = b.placeholder("w", DType::kFloat32, {6, 7});
  const Output bias = b.placeholder("bias", DType::kFloat32, {7});
  const Output product = b.matMul(x, w), sum = b.biasAdd(product, bias), y = b.relu(sum);
  KernelTable kernels_;
  LoweredStep step_;
};

TEST_F(FuseProductsTest, MakesALayerOneOperation) {
  EXPECT_THAT(fusedOps({y}), UnorderedElementsAre("_FusedMatMul"));
  EXPECT_TRUE(only("_FusedMatMul").attributeOr<bool>("relu", false));
  EXPECT_EQ(only("_FusedMatMul").inputs.size(), 3u);
  EXPECT_THAT(fusedOps({sum}), UnorderedElementsAre("_FusedMatMul"));
  EXPECT_FALSE(only("_FusedMatMul").attributeOr<bool>("relu", true));
}

// relu's gradient reads y, not relu's input.
TEST_F(FuseProductsTest, TrainsItToo) {
  const Output loss = b.mean(b.tanh(y));
  std::vector<Output> fetches = graph::addGradients(graph_, loss, std::vector{w, bias});
  fetches.push_back(loss);
  const std::vector<std::string> ops = fusedOps(fetches);
  EXPECT_EQ(std::ranges::count(ops, "_FusedMatMul"), 1);
  EXPECT_EQ(std::ranges::count(ops, "MatMul"), 1) << "the gradient of w";
  EXPECT_EQ(std::ranges::count(ops, "Relu"), 0);
}

TEST_F(FuseProductsTest, LeavesWhatSomebodyReads) {
  EXPECT_THAT(fusedOps({y, product}), UnorderedElementsAre("MatMul", "BiasAdd", "Relu"));
  EXPECT_THAT(fusedOps({y, sum}), UnorderedElementsAre("_FusedMatMul", "Relu"));
  EXPECT_THAT(fusedOps({y, b.tanh(sum)}), UnorderedElementsAre("_FusedMatMul", "Relu", "Tanh"));
  EXPECT_THAT(fusedOps({y, b.tanh(product)}),
              UnorderedElementsAre("MatMul", "BiasAdd", "Relu", "Tanh"));
}

// The bias has other columns than the product.
TEST_F(FuseProductsTest, LeavesAReshapedProduct) {
  const Output wide = b.placeholder("wide", DType::kFloat32, {35});
  EXPECT_THAT(fusedOps({b.biasAdd(b.reshape(product, {1, 35}), wide)}),
              UnorderedElementsAre("MatMul", "BiasAdd"));
}

// Each product runs when its bias was added: earlier, it would take memory until it is read.
TEST_F(FuseProductsTest, KeepsTheOrder) {
  const Output h = b.placeholder("h", DType::kFloat32, {5, 7});
  const Output u = b.placeholder("u", DType::kFloat32, {7, 7});
  Output state = h;
  for (int i = 0; i < 3; ++i) {
    const Output before = b.matMul(state, u);
    const Output projected = b.biasAdd(b.matMul(x, w), bias);
    state = b.tanh(b.add(before, projected));
  }
  const std::vector<std::string> ops = fusedOps({state});
  const std::vector<std::string> one = {"MatMul", "_FusedMatMul", "Add", "Tanh"};
  std::vector<std::string> expected;
  for (int i = 0; i < 3; ++i) expected.insert(expected.end(), one.begin(), one.end());
  EXPECT_EQ(ops, expected);
}

TEST_F(FuseProductsTest, LeavesWhatTheDeviceHasNoKernelFor) {
  step_ = lower(graph_, std::array{y});
  fuseProducts(step_, kernels_, DeviceType::kCpu);
  EXPECT_EQ(step_.operations.size(), 3u);
}

TEST_F(FuseProductsTest, LeavesBFloat16) {
  step_ = lower(graph_, std::array{y});
  for (Operation& operation : step_.operations)
    if (operation.op == "MatMul") operation.input_specs[0].dtype = DType::kBFloat16;
  fuseProducts(step_, kernels_, DeviceType::kGpu);
  EXPECT_EQ(step_.operations.size(), 3u);
}

}  // namespace
}  // namespace dtf::runtime
