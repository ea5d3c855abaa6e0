#include "common/train/model_step.h"

#include <algorithm>

#include "common/base/check.h"

namespace dtf::train {

namespace {

// The handle of a value or input that the step doesn't read, such as a moving average in training.
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

// Returns the results in the order of loss(), accuracy(), outputs(), scalar().
std::vector<graph::Output> resultsOf(const model::ModelGraph& model) {
  std::vector<graph::Output> results = {model.loss};
  if (model.accuracy) results.push_back(*model.accuracy);
  if (model.outputs_wanted) results.push_back(model.logits);
  results.insert(results.end(), model.scalars.begin(), model.scalars.end());
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
      has_accuracy_(model.accuracy && !trains(model)),
      has_outputs_(model.outputs_wanted && !trains(model)),
      step_(compilePart(part, on, kept)) {
  DTF_CHECK(!model.variables.empty());
  for (const graph::Output input : model::inputsOf(model))
    inputs_.push_back({model.graph.spec(input), inputOf(part, nameOf(model, input)), nullptr});
  share_.resize(inputs_.size());
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
    look_up_inputs_.push_back(variable.indices_input);
    if (variable.update && variable.indices) addLookUp(model, variable);
  }
  for (uint32_t i = 0; i < gradient_handles_.size(); ++i) {
    const auto handle = static_cast<size_t>(gradient_handles_[i]);
    trained_.resize(std::max(trained_.size(), handle + 1));
    trained_[handle] = i;
  }
  told_.reserve(trained_.size());
}

// Translates handles of gradients to variables.
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

// The indices are an input, perhaps of another shape.
void ModelStep::addLookUp(const model::ModelGraph& model, const model::ModelVariable& variable) {
  const graph::TensorSpec& indices = model.graph.spec(*variable.indices);
  DTF_CHECK(indices.shape.elements() == inputs_.at(variable.indices_input).spec.shape.elements());
  look_ups_.back() = {indices.dtype, nullptr, static_cast<size_t>(indices.shape.elements()),
                      nullptr};
}

optimizer::LookUp ModelStep::lookUp(uint32_t variable) const {
  DTF_CHECK(isSparse(variable) && look_ups_[variable].gradients != nullptr);
  optimizer::LookUp look_up = look_ups_[variable];
  look_up.ids = inputs_[look_up_inputs_[variable]].bound;
  DTF_CHECK(look_up.ids != nullptr);
  return look_up;
}

void ModelStep::bindExamples(std::span<const std::byte* const> parts) {
  DTF_CHECK(parts.size() == inputs_.size());
  for (size_t i = 0; i < parts.size(); ++i) {
    DTF_CHECK(parts[i] != nullptr);
    inputs_[i].bound = parts[i];
    bindInput(inputs_[i].handle, parts[i]);
  }
}

void ModelStep::bindExamples(const data::Batch& batch, int64_t first) {
  DTF_CHECK(batch.parts.size() == inputs_.size() && first >= 0);
  DTF_CHECK(first + batch_size_ <= batch.count);
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const Tensor& part = batch.parts[i];
    const graph::TensorSpec& spec = inputs_[i].spec;
    const int64_t room = part.shape().dim(0);
    // Shapes may differ by a dimension of 1: the bytes are the same.
    DTF_CHECK(part.dtype() == spec.dtype &&
              part.shape().elements() * batch_size_ == spec.shape.elements() * room);
    share_[i] = part.data() + part.bytes() / static_cast<size_t>(room) * static_cast<size_t>(first);
  }
  bindExamples(share_);
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
