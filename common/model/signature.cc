#include "common/model/signature.h"

#include <utility>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/graph/builder.h"
#include "common/graph/graph_copy.h"
#include "common/model/inference_graph.h"
#include "common/model/model_graph.h"
#include "common/yaml/key_table.h"
#include "common/yaml/report.h"

namespace dtf::model {

namespace {

using graph::Node;
using graph::Output;
using Role = SignatureTensor::Role;
using Tensors = std::vector<SignatureTensor>;

constexpr std::string_view kSignatureNames[] = {"predict", "evaluate", "train"};

// Adds the inputs of the examples, named as in signature.h.
void addExamples(const ModelSpec& spec, const ModelGraph& model, Tensors& tensors) {
  if (!spec.features_are_categories) tensors.push_back({Role::kInput, "features", model.features});
  for (size_t i = 0; i < model.categories.size(); ++i)
    tensors.push_back(
        {Role::kInput, "categories/" + spec.categories.at(i).name, model.categories[i]});
}

void addVariables(const ModelGraph& model, Tensors& tensors) {
  for (const ModelVariable& variable : model.variables)
    tensors.push_back(
        {Role::kVariable, model.graph.node(variable.value.node).name, variable.value});
}

Signature predict(const ModelSpec& spec, int64_t batch_size) {
  InferenceGraph built = buildInferenceGraph(spec, batch_size);
  Tensors tensors;
  addExamples(spec, built.model, tensors);
  tensors.push_back({Role::kOutput, "outputs", built.outputs});
  tensors.push_back({Role::kOutput, "logits", built.model.logits});
  addVariables(built.model, tensors);
  return {std::move(built.model.graph), std::move(tensors)};
}

Tensors ofExamples(const ModelSpec& spec, const ModelGraph& model) {
  Tensors tensors;
  addExamples(spec, model, tensors);
  tensors.push_back({Role::kInput, "labels", model.labels});
  tensors.push_back({Role::kOutput, "loss", model.loss});
  return tensors;
}

Signature evaluate(const ModelSpec& spec, int64_t batch_size) {
  ModelGraph model = buildEvaluationGraph(spec, batch_size);
  Tensors tensors = ofExamples(spec, model);
  tensors.push_back({Role::kOutput, "logits", model.logits});
  if (model.accuracy) tensors.push_back({Role::kOutput, "accuracy", *model.accuracy});
  addVariables(model, tensors);
  return {std::move(model.graph), std::move(tensors)};
}

// Returns the ps's update: momentum * average + (1 - momentum) * statistic.
Output nextAverage(graph::Builder& ops, const ModelVariable& variable) {
  DTF_CHECK(variable.momentum && variable.gradient);
  return ops.add(ops.scale(variable.value, *variable.momentum),
                 ops.scale(*variable.gradient, 1 - *variable.momentum));
}

Signature train(const ModelSpec& spec, int64_t batch_size) {
  ModelGraph model = buildTrainingGraph(spec, batch_size);
  graph::Builder ops(model.graph);
  Tensors tensors = ofExamples(spec, model);
  if (model.random_key) tensors.push_back({Role::kInput, "random_key", *model.random_key});
  for (const ModelVariable& variable : model.variables) {
    DTF_CHECK(variable.gradient.has_value());
    const std::string name = model.graph.node(variable.value.node).name;
    const graph::Builder::Scope scope = ops.nameScope("signature");
    if (variable.momentum)
      tensors.push_back({Role::kOutput, "next/" + name, nextAverage(ops, variable)});
    else
      tensors.push_back({Role::kOutput, "gradient/" + name, *variable.gradient});
  }
  addVariables(model, tensors);
  // Leaves out the updates by the ps's optimizer: the caller has its own.
  graph::GraphCopy copy(model.graph);
  for (const Node& node : model.graph.nodes())
    if (!graph::appliesGradient(node)) copy.add(node);
  for (SignatureTensor& each : tensors) each.tensor = copy.map(each.tensor);
  return {copy.take(), std::move(tensors)};
}

}  // namespace

Signature buildSignature(const ModelSpec& model, std::string_view name, int64_t batch_size) {
  DTF_CHECK(batch_size > 0);
  if (name == "predict") return predict(model, batch_size);
  if (name == "evaluate") return evaluate(model, batch_size);
  if (name == "train") return train(model, batch_size);
  throw Error(ErrorCode::kBadConfig, "a model has no signature " + yaml::inQuotes(name) +
                                         yaml::suggestion(name, kSignatureNames));
}

}  // namespace dtf::model
