#include "common/train/inference.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>

#include "common/base/check.h"
#include "common/model/inference_graph.h"
#include "common/train/model_part.h"

namespace dtf::train {

namespace {

// Equals the batch of an evaluation. The last batch is filled up with examples of the batch before.
constexpr int64_t kInferenceBatch = 250;
constexpr int kUnreadValue = -1;

graph::TensorSpec ofOneExample(const graph::TensorSpec& batch) {
  const std::vector<int64_t>& dims = batch.shape.dims();
  DTF_CHECK(!dims.empty() && dims[0] == kInferenceBatch);
  return {batch.dtype, Shape(std::vector<int64_t>(dims.begin() + 1, dims.end()))};
}

}  // namespace

Inference::Inference(const model::ModelSpec& model, const runtime::KernelTable& kernels,
                     runtime::Device& device) {
  const model::InferenceGraph built = model::buildInferenceGraph(model, kInferenceBatch);
  const graph::Graph& graph = built.model.graph;
  units_ = graph.spec(built.outputs).shape.dim(1);
  const ComputeDevice on{&device, &kernels};
  const engine::TaskPart part = localPart(built.model, std::array{built.outputs}, on);
  step_ = compilePart(part, on);
  for (const graph::Output input : model::inputsOf(built.model)) {
    if (input == built.model.labels) continue;
    const graph::TensorSpec& batch = graph.spec(input);
    inputs_.push_back({ofOneExample(batch), Tensor(batch.dtype, batch.shape)});
    const std::string& name = graph.node(input.node).name;
    if (std::find(part.feeds.begin(), part.feeds.end(), name) != part.feeds.end())
      step_->bindInput(step_->input(name), inputs_.back().batch.data());
  }
  for (const model::ModelVariable& variable : built.model.variables) {
    const std::string& name = graph.node(variable.value.node).name;
    value_handles_.push_back(part.graph.find(name) == nullptr ? kUnreadValue
                                                              : step_->parameter(name));
  }
}

void Inference::bindValues(std::span<const float* const> values) {
  DTF_CHECK(values.size() == value_handles_.size());
  for (size_t i = 0; i < values.size(); ++i) {
    DTF_CHECK(values[i] != nullptr);
    if (value_handles_[i] != kUnreadValue) step_->bindParameter(value_handles_[i], values[i]);
  }
}

void Inference::run(std::span<const std::span<const std::byte>> parts, const Take& take) {
  DTF_CHECK(parts.size() == inputs_.size());
  const auto bytesOf = [](const Input& input) {
    return input.batch.bytes() / static_cast<size_t>(kInferenceBatch);
  };
  const auto count = static_cast<int64_t>(parts[0].size() / bytesOf(inputs_[0]));
  for (size_t i = 0; i < parts.size(); ++i)
    DTF_CHECK(parts[i].size() == static_cast<size_t>(count) * bytesOf(inputs_[i]));
  for (int64_t first = 0; first < count; first += kInferenceBatch) {
    const int64_t here = std::min(kInferenceBatch, count - first);
    for (size_t i = 0; i < parts.size(); ++i)
      std::memcpy(inputs_[i].batch.data(),
                  parts[i].data() + static_cast<size_t>(first) * bytesOf(inputs_[i]),
                  static_cast<size_t>(here) * bytesOf(inputs_[i]));
    step_->run();
    take(first, step_->fetch(0).first(static_cast<size_t>(here * units_)));
  }
}

}  // namespace dtf::train
