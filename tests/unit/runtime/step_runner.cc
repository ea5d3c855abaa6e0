#include "tests/unit/runtime/step_runner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>

#include <cmath>
#include <limits>

#include "common/base/error.h"

namespace dtf::runtime::testing {
namespace {

template <class T>
void fillFrom(Tensor& tensor, const Values& values) {
  for (size_t i = 0; i < values.size(); ++i) tensor.as<T>()[i] = static_cast<T>(values[i]);
}

template <class T>
Values valuesOf(std::span<const std::byte> bytes) {
  const auto* const first = reinterpret_cast<const T*>(bytes.data());
  Values values;
  for (size_t i = 0; i < bytes.size() / sizeof(T); ++i)
    values.push_back(static_cast<double>(first[i]));
  return values;
}

}  // namespace

Tensor toTensor(const graph::TensorSpec& spec, const Values& values) {
  Tensor tensor(spec.dtype, spec.shape);
  EXPECT_EQ(static_cast<size_t>(spec.shape.elements()), values.size());
  switch (spec.dtype) {
    case DType::kFloat32:
      fillFrom<float>(tensor, values);
      break;
    case DType::kUInt8:
      fillFrom<uint8_t>(tensor, values);
      break;
    case DType::kInt32:
      fillFrom<int32_t>(tensor, values);
      break;
    case DType::kInt64:
      fillFrom<int64_t>(tensor, values);
      break;
    case DType::kBFloat16:
      break;
  }
  return tensor;
}

StepRunner::StepRunner(Device& device, const KernelTable& kernels, const graph::Graph& graph,
                       const Feeds& feeds, std::span<const graph::Output> fetches,
                       CompileOptions options)
    : step_(compile(graph, fetches, device, kernels, options)) {
  for (const graph::Output& fetch : fetches) dtypes_.push_back(graph.spec(fetch).dtype);
  for (const auto& [output, values] : feeds) {
    const graph::Node& node = graph.node(output.node);
    bound_.push_back(toTensor(graph.spec(output), values));
    if (node.op == "Placeholder") {
      step_->bindInput(step_->input(node.name), bound_.back().data());
      continue;
    }
    const std::string& name =
        node.op == "_Pull" ? node.attribute<std::string>("variable") : node.name;
    try {
      step_->bindParameter(step_->parameter(name), bound_.back().as<float>().data());
    } catch (const Error&) {
      // This step does not read the variable.
    }
  }
  for (const graph::Node& node : graph.nodes()) {
    const bool local = node.op == "ApplyGradient";
    if (!local && node.op != "_Push") continue;
    const std::string name =
        local ? graph.node(node.inputs[0].node).name : node.attribute<std::string>("variable");
    Tensor& target = gradients_[name] =
        Tensor(DType::kFloat32, graph.spec(node.inputs[local ? 1 : 0]).shape);
    for (float& value : target.as<float>()) value = std::numeric_limits<float>::quiet_NaN();
    step_->bindGradient(step_->gradient(name), target.as<float>().data());
  }
}

Values StepRunner::fetch(int i) const {
  const std::span<const std::byte> bytes = step_->fetchBytes(i);
  switch (dtypes_[static_cast<size_t>(i)]) {
    case DType::kFloat32:
      return valuesOf<float>(bytes);
    case DType::kUInt8:
      return valuesOf<uint8_t>(bytes);
    case DType::kInt32:
      return valuesOf<int32_t>(bytes);
    case DType::kInt64:
      return valuesOf<int64_t>(bytes);
    case DType::kBFloat16:
      break;
  }
  return {};
}

Values StepRunner::gradient(std::string_view variable) const {
  const std::span<const float> values = gradients_.find(variable)->second.as<float>();
  return Values(values.begin(), values.end());
}

void expectNear(const Values& actual, const Values& expected, double tolerance) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    ASSERT_NEAR(actual[i], expected[i], tolerance * (1 + std::abs(expected[i])))
        << "at element " << i;
  }
}

void expectLikeReference(Device& device, const KernelTable& kernels, const graph::Graph& graph,
                         const Feeds& feeds, std::span<const graph::Output> fetches,
                         double tolerance, CompileOptions options) {
  StepRunner runner(device, kernels, graph, feeds, fetches, options);
  const std::vector<Values> expected = graph::testing::evaluate(graph, feeds, fetches);
  for (int repeat = 0; repeat < 2; ++repeat) {
    runner.run();
    for (size_t i = 0; i < fetches.size(); ++i) {
      SCOPED_TRACE(graph.node(fetches[i].node).name + " in run " + std::to_string(repeat));
      expectNear(runner.fetch(static_cast<int>(i)), expected[i], tolerance);
    }
  }
}

void expectSameBits(Device& device, const KernelTable& kernels, const KernelTable& other,
                    const graph::Graph& graph, const Feeds& feeds,
                    std::span<const graph::Output> fetches, CompileOptions options) {
  StepRunner one(device, kernels, graph, feeds, fetches, options);
  StepRunner two(device, other, graph, feeds, fetches, options);
  one.run();
  for (int repeat = 0; repeat < 2; ++repeat) {
    two.run();
    for (size_t i = 0; i < fetches.size(); ++i) {
      const std::span<const std::byte> expected = one.step().fetchBytes(static_cast<int>(i));
      const std::span<const std::byte> actual = two.step().fetchBytes(static_cast<int>(i));
      ASSERT_EQ(actual.size(), expected.size());
      const auto differs = std::mismatch(actual.begin(), actual.end(), expected.begin());
      const size_t element = static_cast<size_t>(differs.first - actual.begin()) /
                             dtypeBytes(graph.spec(fetches[i]).dtype);
      ASSERT_EQ(differs.first, actual.end())
          << graph.node(fetches[i].node).name << " in run " << repeat << ": element " << element
          << " is " << two.fetch(static_cast<int>(i))[element] << ", not "
          << one.fetch(static_cast<int>(i))[element] << "\n"
          << one.step().plan().str();
    }
  }
}

Values randomValues(Random& random, int64_t count, float low, float high) {
  Values values;
  for (int64_t i = 0; i < count; ++i) values.push_back(random.uniform(low, high));
  return values;
}

Values randomIntegers(Random& random, int64_t count, uint64_t below) {
  Values values;
  for (int64_t i = 0; i < count; ++i) values.push_back(static_cast<double>(random.below(below)));
  return values;
}

}  // namespace dtf::runtime::testing
