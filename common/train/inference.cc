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

// As many as a batch of an evaluation has; the last one is filled with what the one before left.
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
  const graph::TensorSpec& batch = graph.spec(built.model.features);
  features_ = ofOneExample(batch);
  units_ = graph.spec(built.outputs).shape.dim(1);
  batch_ = Tensor(batch.dtype, batch.shape);
  const ComputeDevice on{&device, &kernels};
  const engine::TaskPart part = localPart(built.model, std::array{built.outputs}, on);
  step_ = compilePart(part, on);
  step_->bindInput(step_->input(graph.node(built.model.features.node).name), batch_.data());
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

void Inference::run(std::span<const std::byte> examples, const Take& take) {
  const size_t bytes = batch_.bytes() / static_cast<size_t>(kInferenceBatch);
  DTF_CHECK(bytes > 0 && examples.size() % bytes == 0);
  const auto count = static_cast<int64_t>(examples.size() / bytes);
  for (int64_t first = 0; first < count; first += kInferenceBatch) {
    const int64_t here = std::min(kInferenceBatch, count - first);
    std::memcpy(batch_.data(), examples.data() + static_cast<size_t>(first) * bytes,
                static_cast<size_t>(here) * bytes);
    step_->run();
    take(first, step_->fetch(0).first(static_cast<size_t>(here * units_)));
  }
}

}  // namespace dtf::train
