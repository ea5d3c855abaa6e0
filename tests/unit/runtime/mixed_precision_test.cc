// Which tensors become bfloat16. The device suite tests the results.

#include "common/runtime/mixed_precision.h"

#include "tests/unit/runtime/residual_graph.h"

namespace dtf::runtime::testing {
namespace {

using graph::Output;

class MixedPrecisionTest : public ::testing::Test {
 protected:
  // images * filter -> norm -> relu, as rows * weights -> the mean; with all gradients.
  MixedPrecisionTest() {
    images_ = b.placeholder("images", DType::kFloat32, {2, 4, 4, 8});
    const Output filter = b.placeholder("filter", DType::kFloat32, {1, 1, 8, 8});
    const Output weights = b.placeholder("weights", DType::kFloat32, {8, 3});
    const auto& g = of_graph_;
    const Output y = b.relu(of_graph_.norm(b.conv2D(images_, filter, {})));
    const Output rows = b.reshape(y, {32, 8});
    const Output loss = b.mean(b.tanh(b.matMul(rows, weights)));
    fetches_ = graph::addGradients(of_graph_.graph, loss, std::vector{filter, weights, g.scale});
    fetches_.push_back(loss);
  }

  void lowered(Precision precision, DeviceType device = DeviceType::kGpu) {
    step_ = lower(of_graph_.graph, fetches_);
    usePrecision(step_, precision, gpuTable(), device);
  }
  const Operation& only(std::string_view op) const {
    const auto at = std::ranges::find(step_.operations, op, &Operation::op);
    EXPECT_NE(at, step_.operations.end()) << op;
    return *at;
  }
  // Expects that every operation reads an input in the type in which it was computed, or fed.
  void expectConsistent() const {
    std::map<Output, DType> made;
    for (const Operation& operation : step_.operations) {
      for (size_t i = 0; i < operation.inputs.size(); ++i) {
        const auto at = made.find(operation.inputs[i]);
        const DType is = at == made.end() ? DType::kFloat32 : at->second;
        EXPECT_EQ(operation.input_specs[i].dtype, is) << operation.op << " input " << i;
      }
      for (size_t i = 0; i < operation.outputs.size(); ++i)
        made[operation.outputs[i]] = operation.output_specs[i].dtype;
    }
    for (const BoundTensor& fetch : step_.fetches)
      EXPECT_EQ(made.at(fetch.tensor), DType::kFloat32) << fetch.name;
  }

  std::vector<std::string> producersOf(const Operation& reader) const {
    std::vector<std::string> ops;
    for (const Output& input : reader.inputs)
      for (const Operation& operation : step_.operations)
        if (std::ranges::count(operation.outputs, input) > 0) ops.push_back(operation.op);
    return ops;
  }

  ResidualGraph of_graph_;
  graph::Builder& b = of_graph_.b;
  Output images_;
  std::vector<Output> fetches_;
  LoweredStep step_;
};

TEST_F(MixedPrecisionTest, Float32ChangesNothing) {
  lowered(Precision::kFloat32);
  EXPECT_THAT(opNames(step_), Not(Contains(kCastPrecisionOp)));
  EXPECT_FALSE(only("MatMul").attributeOr<bool>("tf32", false));
}

TEST_F(MixedPrecisionTest, Tf32IsAllowedToProductsAndConvolutionsOfGpus) {
  lowered(Precision::kTf32);
  for (const Operation& operation : step_.operations) {
    const bool multiplies = operation.op == "MatMul" || operation.op.starts_with("Conv2D");
    EXPECT_EQ(operation.attributeOr<bool>("tf32", false), multiplies) << operation.op;
  }
  lowered(Precision::kTf32, DeviceType::kCpu);
  EXPECT_FALSE(only("MatMul").attributeOr<bool>("tf32", false));
}

TEST_F(MixedPrecisionTest, WhatLiesBetweenTheLayersIsBFloat16) {
  lowered(Precision::kBFloat16);
  expectConsistent();
  EXPECT_EQ(only("Conv2D").output_specs[0].dtype, DType::kBFloat16);
  EXPECT_EQ(only("Relu").output_specs[0].dtype, DType::kBFloat16);
  const Operation& norm = only("FusedBatchNorm");
  EXPECT_EQ(norm.output_specs[0].dtype, DType::kBFloat16);
  EXPECT_EQ(norm.output_specs[1].dtype, DType::kFloat32) << "a statistic";
}

TEST_F(MixedPrecisionTest, GradientsOfVariablesAndLossesAreFloat32) {
  lowered(Precision::kBFloat16);
  EXPECT_EQ(only("Conv2DBackpropFilter").output_specs[0].dtype, DType::kFloat32);
  EXPECT_EQ(only("Tanh").input_specs[0].dtype, DType::kFloat32);
  EXPECT_EQ(only("Mean").input_specs[0].dtype, DType::kFloat32);
}

TEST_F(MixedPrecisionTest, TheGradientOfWhatAConvolutionReadsIsCast) {
  step_ = lower(of_graph_.graph,
                graph::addGradients(of_graph_.graph, fetches_.back(), std::vector{images_}));
  const Output gradient = step_.fetches[0].tensor;
  step_.gradients.push_back({"images", gradient, step_.fetches[0].spec});
  usePrecision(step_, Precision::kBFloat16, gpuTable(), DeviceType::kGpu);
  expectConsistent();
  EXPECT_EQ(only("Conv2DBackpropInput").output_specs[0].dtype, DType::kBFloat16);
  EXPECT_NE(step_.gradients[0].tensor, gradient);
}

// For example the weights of a recurrent layer.
TEST_F(MixedPrecisionTest, TheTermsOfAGradientAreFloat32) {
  graph::Builder& b = of_graph_.b;
  const Output rows = b.placeholder("rows", DType::kFloat32, {4, 8});
  const Output weights = b.placeholder("square", DType::kFloat32, {8, 8});
  const Output loss = b.mean(b.matMul(b.matMul(rows, weights), weights));
  step_ = lower(of_graph_.graph, graph::addGradients(of_graph_.graph, loss, std::vector{weights}));
  step_.gradients.push_back({"square", step_.fetches[0].tensor, step_.fetches[0].spec});
  usePrecision(step_, Precision::kBFloat16, gpuTable(), DeviceType::kGpu);
  expectConsistent();
  for (const graph::TensorSpec& term : only("AddN").input_specs)
    EXPECT_EQ(term.dtype, DType::kFloat32);
  EXPECT_THAT(producersOf(only("AddN")), Each("MatMul"));
}

TEST_F(MixedPrecisionTest, CastsEachTensorOnce) {
  lowered(Precision::kBFloat16);
  std::vector<Output> cast;
  for (const Operation& operation : step_.operations)
    if (operation.op == kCastPrecisionOp) cast.push_back(operation.inputs[0]);
  std::ranges::sort(cast);
  EXPECT_EQ(std::ranges::adjacent_find(cast), cast.end());
  EXPECT_FALSE(cast.empty());
}

TEST_F(MixedPrecisionTest, ProductsOfACpuRoundTheirFactorsAndNothingElseIsNarrow) {
  lowered(Precision::kBFloat16, DeviceType::kCpu);
  EXPECT_THAT(opNames(step_), Not(Contains(kCastPrecisionOp)));
  for (const Operation& operation : step_.operations) {
    const bool multiplies = operation.op == "MatMul" || operation.op.starts_with("Conv2D");
    EXPECT_EQ(operation.attributeOr<bool>(kRoundedFactors, false), multiplies) << operation.op;
    for (const graph::TensorSpec& output : operation.output_specs)
      EXPECT_NE(output.dtype, DType::kBFloat16) << operation.op;
  }
}

TEST_F(MixedPrecisionTest, AGpuWithoutKernelsForItSaysWhatToDo) {
  step_ = lower(of_graph_.graph, fetches_);
  try {
    usePrecision(step_, Precision::kBFloat16, KernelTable(), DeviceType::kGpu);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBadConfig);
    EXPECT_THAT(error.message(), HasSubstr("set train.precision to float32"));
  }
}

}  // namespace
}  // namespace dtf::runtime::testing
