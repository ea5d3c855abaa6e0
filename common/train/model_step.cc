#include "common/train/model_step.h"

#include <algorithm>

#include "common/base/check.h"

namespace dtf::train {

namespace {

// Of what the step doesn't read: a moving average, while training.
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

// In the order in which they are asked for (loss(), accuracy(), outputs()).
std::vector<graph::Output> resultsOf(const model::ModelGraph& model) {
  std::vector<graph::Output> results = {model.loss};
  if (model.accuracy) results.push_back(*model.accuracy);
  if (model.outputs_wanted) results.push_back(model.logits);
  return results;
}

}  // namespace

ModelStep::ModelStep(const model::ModelGraph& model, const runtime::KernelTable& kernels,
                     runtime::Device& device)
    : ModelStep(model, localPart(model, resultsOf(model), {&device, &kernels}),
                {&device, &kernels}) {}

ModelStep::ModelStep(const model::ModelGraph& model, const engine::TaskPart& part,
                     const ComputeDevice& on, const runtime::KeptVariables* kept)
    : batch_size_(model.graph.spec(model.features).shape.dim(0)),
      features_(model.graph.spec(model.features)),
      labels_(model.graph.spec(model.labels)),
      has_accuracy_(model.accuracy && !trains(model)),
      step_(compilePart(part, on, kept)) {
  DTF_CHECK(!model.variables.empty());
  features_handle_ = inputOf(part, nameOf(model, model.features));
  labels_handle_ = inputOf(part, nameOf(model, model.labels));
  if (model.random_key) {
    random_key_ = tensorFor(model, *model.random_key);
    bindInput(inputOf(part, nameOf(model, *model.random_key)), random_key_.data());
  }
  for (const model::ModelVariable& variable : model.variables) {
    const bool is_read = !variable.momentum || !variable.gradient;
    value_handles_.push_back(is_read ? step_->parameter(nameOf(model, variable.value)) : kUnread);
    if (variable.update)
      gradient_handles_.push_back(step_->gradient(nameOf(model, variable.value)));
    look_ups_.emplace_back();
    if (variable.update && variable.indices) addLookUp(model, variable);
  }
  for (uint32_t i = 0; i < gradient_handles_.size(); ++i) {
    const auto handle = static_cast<size_t>(gradient_handles_[i]);
    trained_.resize(std::max(trained_.size(), handle + 1));
    trained_[handle] = i;
  }
  told_.reserve(trained_.size());
}

// From handles of gradients to variables.
class ModelStep::Translator final : public runtime::StepListener {
 public:
  Translator(ModelStep& step, GradientListener& listener) : step_(step), listener_(listener) {}
  void onFetches() override { listener_.onLoss(step_.loss()); }
  void onGradients(std::span<const size_t> gradients) override {
    step_.told_.clear();
    for (const size_t gradient : gradients) step_.told_.push_back(step_.trained_.at(gradient));
    listener_.onGradients(step_.told_);
  }

 private:
  ModelStep& step_;
  GradientListener& listener_;
};

void ModelStep::run(GradientListener& listener) {
  DTF_CHECK(!gradient_handles_.empty());
  Translator translator(*this, listener);
  step_->run(&translator);
}

int ModelStep::inputOf(const engine::TaskPart& part, const std::string& placeholder) const {
  const bool is_read =
      std::find(part.feeds.begin(), part.feeds.end(), placeholder) != part.feeds.end();
  return is_read ? step_->input(placeholder) : kUnread;
}

void ModelStep::bindInput(int handle, const std::byte* data) {
  if (handle != kUnread) step_->bindInput(handle, data);
}

// The indices are the features, whatever their shape.
void ModelStep::addLookUp(const model::ModelGraph& model, const model::ModelVariable& variable) {
  const graph::TensorSpec& indices = model.graph.spec(*variable.indices);
  DTF_CHECK(indices.shape.elements() == features_.shape.elements());
  look_ups_.back() = {indices.dtype, nullptr, static_cast<size_t>(indices.shape.elements()),
                      nullptr};
}

LookUp ModelStep::lookUp(uint32_t variable) const {
  DTF_CHECK(isSparse(variable) && bound_features_ != nullptr &&
            look_ups_[variable].gradients != nullptr);
  LookUp look_up = look_ups_[variable];
  look_up.ids = bound_features_;
  return look_up;
}

void ModelStep::bindExamples(const std::byte* features, const std::byte* labels) {
  DTF_CHECK(features != nullptr && labels != nullptr);
  bound_features_ = features;
  bindInput(features_handle_, features);
  bindInput(labels_handle_, labels);
}

void ModelStep::bindShare(const data::Batch& batch, uint32_t share, uint32_t shares) {
  DTF_CHECK(batch.parts.size() == 2 && share < shares);
  const Tensor& features = batch.parts[0];
  const Tensor& labels = batch.parts[1];
  // A shape may have a dimension of 1 more or less: the bytes are the same.
  DTF_CHECK(features.dtype() == features_.dtype &&
            features.shape().elements() == features_.shape.elements() * shares);
  DTF_CHECK(labels.dtype() == labels_.dtype &&
            labels.shape().elements() == labels_.shape.elements() * shares);
  bindExamples(features.data() + features.bytes() / shares * share,
               labels.data() + labels.bytes() / shares * share);
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

void ModelStep::bindRows(uint32_t variable, float* rows) {
  DTF_CHECK(isSparse(variable) && rows != nullptr);
  look_ups_[variable].gradients = rows;
  step_->bindGradient(gradient_handles_[variable], rows);
}

}  // namespace dtf::train
