#include "common/train/model_step.h"

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/graph/partitioner.h"
#include "common/graph/prune.h"

namespace dtf::train {

namespace {

// Of a variable that the step doesn't read: a moving average, while training.
constexpr int kUnread = -1;

const std::string& nameOf(const model::ModelGraph& model, graph::Output output) {
  return model.graph.node(output.node).name;
}

bool trains(const model::ModelGraph& model) {
  return model.variables.at(0).update.has_value();
}

Tensor tensorFor(const model::ModelGraph& model, graph::Output output) {
  const graph::TensorSpec& spec = model.graph.spec(output);
  return Tensor(spec.dtype, spec.shape);
}

}  // namespace

graph::Graph workerPart(const model::ModelGraph& model, const graph::Placement& placement,
                        uint32_t rank) {
  std::map<TaskId, graph::Graph> parts = graph::partition(model.graph, placement);
  const TaskId self{JobKind::kWorker, rank};
  for (const auto& [task, part] : parts) {
    if (task == self) continue;
    for (const graph::Node& node : part.nodes())
      if (node.op != "Variable")
        throw Error(ErrorCode::kBadConfig, "node '" + node.name + "' (" + node.op +
                                               ") is placed on " + task.device() + ", but " +
                                               self.name() + " computes its whole model itself");
  }
  return std::move(parts.at(self));
}

ModelStep::ModelStep(const model::ModelGraph& model, const runtime::KernelTable& kernels,
                     runtime::Device& device)
    : ModelStep(model, model.graph, kernels, device) {}

ModelStep::ModelStep(const model::ModelGraph& model, const graph::Graph& part,
                     const runtime::KernelTable& kernels, runtime::Device& device)
    : batch_size_(model.graph.spec(model.features).shape.dim(0)),
      features_(model.graph.spec(model.features)),
      labels_(model.graph.spec(model.labels)),
      has_accuracy_(model.accuracy && !trains(model)) {
  DTF_CHECK(!model.variables.empty());
  std::vector<graph::Output> fetches = {graph::findTensor(part, nameOf(model, model.loss))};
  if (has_accuracy_) fetches.push_back(graph::findTensor(part, nameOf(model, *model.accuracy)));
  if (model.outputs_wanted && !trains(model))
    fetches.push_back(graph::findTensor(part, nameOf(model, model.logits)));
  step_ = runtime::compile(part, fetches, device, kernels);
  features_handle_ = step_->input(nameOf(model, model.features));
  labels_handle_ = step_->input(nameOf(model, model.labels));
  if (model.random_key) {
    random_key_ = tensorFor(model, *model.random_key);
    step_->bindInput(step_->input(nameOf(model, *model.random_key)), random_key_.data());
  }
  for (const model::ModelVariable& variable : model.variables) {
    const bool is_read = !variable.momentum || !variable.gradient;
    value_handles_.push_back(is_read ? step_->parameter(nameOf(model, variable.value)) : kUnread);
    if (variable.update)
      gradient_handles_.push_back(step_->gradient(nameOf(model, variable.value)));
    look_ups_.emplace_back();
    if (variable.update && variable.indices) addLookUp(model, variable);
  }
}

// The indices are the features, whatever their shape.
void ModelStep::addLookUp(const model::ModelGraph& model, const model::ModelVariable& variable) {
  const graph::TensorSpec& gradients = model.graph.spec(variable.gradient.value());
  const graph::TensorSpec& indices = model.graph.spec(*variable.indices);
  DTF_CHECK(indices.shape.elements() == features_.shape.elements());
  Buffer& buffer =
      row_gradients_.emplace_back(static_cast<size_t>(gradients.shape.elements()) * sizeof(float));
  look_ups_.back() = {indices.dtype, nullptr, static_cast<size_t>(indices.shape.elements()),
                      buffer.as<float>()};
  step_->bindGradient(gradient_handles_.back(), buffer.as<float>());
}

LookUp ModelStep::lookUp(uint32_t variable) const {
  DTF_CHECK(isSparse(variable) && bound_features_ != nullptr);
  LookUp look_up = look_ups_[variable];
  look_up.ids = bound_features_;
  return look_up;
}

void ModelStep::bindExamples(const std::byte* features, const std::byte* labels) {
  DTF_CHECK(features != nullptr && labels != nullptr);
  bound_features_ = features;
  step_->bindInput(features_handle_, features);
  step_->bindInput(labels_handle_, labels);
}

void ModelStep::bindBatch(const data::Batch& batch) {
  DTF_CHECK(batch.parts.size() == 2);
  const Tensor& features = batch.parts[0];
  const Tensor& labels = batch.parts[1];
  // A shape may have a dimension of 1 more or less: the bytes are the same.
  DTF_CHECK(features.dtype() == features_.dtype &&
            features.shape().elements() == features_.shape.elements());
  DTF_CHECK(labels.dtype() == labels_.dtype &&
            labels.shape().elements() == labels_.shape.elements());
  bindExamples(features.data(), labels.data());
}

void ModelStep::setRandomKey(uint64_t seed, uint64_t batch) {
  if (random_key_.bytes() == 0) return;
  random_key_.as<int64_t>()[0] = static_cast<int64_t>(seed);
  random_key_.as<int64_t>()[1] = static_cast<int64_t>(batch);
}

void ModelStep::bindValue(uint32_t variable, const float* value) {
  DTF_CHECK(variable < value_handles_.size() && value != nullptr);
  if (value_handles_[variable] == kUnread) return;
  step_->bindParameter(value_handles_[variable], value);
}

void ModelStep::bindGradient(uint32_t variable, float* gradient) {
  DTF_CHECK(variable < gradient_handles_.size() && gradient != nullptr && !isSparse(variable));
  step_->bindGradient(gradient_handles_[variable], gradient);
}

}  // namespace dtf::train
