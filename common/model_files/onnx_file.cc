#include "common/model_files/onnx_file.h"

#include <fmt/core.h>

#include <algorithm>
#include <list>
#include <set>
#include <span>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/model/inference_graph.h"
#include "common/model_files/onnx_ops.h"
#include "common/model_files/onnx_preparation.h"
#include "common/model_files/onnx_values.h"
#include "common/yaml/error_at.h"

namespace dtf::model_files {

namespace {

using graph::Node;
using graph::NodeId;
using graph::Output;

std::vector<int64_t> withoutBatch(const Shape& shape) {
  DTF_CHECK(shape.rank() > 0 && shape.dim(0) == kAnyBatch);
  return {shape.dims().begin() + 1, shape.dims().end()};
}

class OnnxExport {
 public:
  explicit OnnxExport(const TrainedModel& trained)
      : trained_(trained),
        built_(model::buildInferenceGraph(trained.model, kAnyBatch)),
        graph_(built_.model.graph),
        values_(graph_),
        prepared_(trained.model.input_dtype == DType::kFloat32
                      ? preparedColumnsOf(trained.signature, trained.model.input_shape.back())
                      : std::vector<cluster::PreparedColumn>()) {
    need(built_.outputs.node);
    need(built_.model.logits.node);
  }

  std::string run() {
    for (const auto& [title, input] : inputs())
      if (isPrepared(input)) {
        values_.alias(input, Layout::kRows,
                      addPreparation(values_, prepared_, values_.newName(title)));
      } else {
        values_.setInput(input, title);
      }
    setWeights();
    foldConstants();
    refuseUnknown();
    for (const Node& node : graph_.nodes())
      if (isDue(node)) convert(node);
    const std::string name(model::outputName(trained_.model));
    const std::vector<std::pair<std::string, Output>> outputs = {{name, built_.outputs},
                                                                 {"logits", built_.model.logits}};
    std::vector<OnnxValue> described;
    for (const auto& [title, output] : outputs) {
      const std::string from = values_.in(Layout::kRows, output);
      values_.proto().addNode("Identity", {&from, 1}, title, {});
      described.push_back({title, DType::kFloat32, withoutBatch(graph_.spec(output).shape)});
    }
    std::vector<OnnxValue> fed;
    for (const auto& [title, input] : inputs())
      fed.push_back({title, graph_.spec(input).dtype,
                     isPrepared(input)
                         ? std::vector<int64_t>{static_cast<int64_t>(prepared_.size())}
                         : withoutBatch(graph_.spec(input).shape)});
    return values_.proto().finish(trained_.job, fed, described, metadata());
  }

 private:
  // Returns the inputs that the outputs depend on, named as in model/signature.h.
  std::vector<std::pair<std::string, Output>> inputs() const {
    std::vector<std::pair<std::string, Output>> inputs;
    if (!trained_.model.features_are_categories)
      inputs.emplace_back("features", built_.model.features);
    for (size_t i = 0; i < built_.model.categories.size(); ++i)
      inputs.emplace_back("categories/" + trained_.model.categories[i].name,
                          built_.model.categories[i]);
    std::erase_if(inputs, [this](const auto& each) { return !needed_.contains(each.second.node); });
    return inputs;
  }

  // Whether `input` is the features of a table that the file prepares itself.
  bool isPrepared(Output input) const {
    return !prepared_.empty() && input == built_.model.features;
  }

  // Returns the tensors of the file that are no variables of the model: a line each.
  std::string constants() const {
    std::set<std::string_view> variables;
    for (const NamedTensor& variable : trained_.variables) variables.insert(variable.name);
    std::string names;
    for (const auto& [name, wanted] : values_.constants())
      if (!variables.contains(wanted)) names += (names.empty() ? "" : "\n") + name;
    return names;
  }

  // Called last.
  std::map<std::string, std::string> metadata() const {
    std::map<std::string, std::string> metadata = metadataOf(trained_);
    if (std::string names = constants(); !names.empty())
      metadata[kConstantsEntry] = std::move(names);
    if (prepared_.empty()) return metadata;
    std::string& input = metadata["input"];
    const std::string raw =
        fmt::format("features: float32 [batch, {}], NaN if missing", prepared_.size());
    input = raw + input.substr(std::min(input.find(';'), input.size()));
    metadata["scaling"] = "the preparation of each column, as in data_signature";
    return metadata;
  }

  // Adds the node and all that it depends on. Inputs have smaller ids.
  void need(NodeId last) {
    needed_.insert(last);
    for (auto id = needed_.rbegin(); id != needed_.rend(); ++id)
      for (const Output input : graph_.node(*id).inputs) needed_.insert(input.node);
  }

  void setWeights() {
    DTF_CHECK(trained_.variables.size() == built_.model.variables.size());
    for (size_t i = 0; i < trained_.variables.size(); ++i) {
      const NamedTensor& variable = trained_.variables[i];
      const Output value = built_.model.variables[i].value;
      DTF_CHECK_MSG(graph_.node(value.node).name == variable.name, variable.name);
      DTF_CHECK_MSG(graph_.spec(value).shape == variable.value.shape(), variable.name);
      values_.setWeight(value, {variable.name, variable.value.shape(), variable.value.as<float>()});
    }
  }

  // Treats constants, and a Concat of them, as weights: a norm without a trained scale reads them.
  void foldConstants() {
    for (const Node& node : graph_.nodes()) {
      const Output output{node.id, 0};
      if (!needed_.contains(node.id) || !canFold(node)) continue;
      std::vector<float>& values = folded_.emplace_back();
      if (node.op == "Const")
        values.assign(static_cast<size_t>(graph_.spec(output).shape.elements()),
                      static_cast<float>(node.attribute<double>("value")));
      for (const Output input : node.inputs) {
        const std::span<const float> part = values_.weight(input)->values;
        values.insert(values.end(), part.begin(), part.end());
      }
      DTF_CHECK_MSG(static_cast<int64_t>(values.size()) == graph_.spec(output).shape.elements(),
                    node.name);
      values_.setWeight(output, {node.name, graph_.spec(output).shape, values});
      done_.insert(node.id);
    }
  }

  // A constant as long as the batch can't be folded: that size is open.
  bool canFold(const Node& node) const {
    const graph::TensorSpec& spec = graph_.spec({node.id, 0});
    if (spec.dtype != DType::kFloat32 || (spec.shape.rank() > 0 && spec.shape.dim(0) == kAnyBatch))
      return false;
    return node.op == "Const" ||
           (node.op == "Concat" && spec.shape.rank() == 1 &&
            std::all_of(node.inputs.begin(), node.inputs.end(),
                        [this](Output input) { return values_.weight(input) != nullptr; }));
  }

  bool isDue(const Node& node) const {
    return needed_.contains(node.id) && !done_.contains(node.id) && node.op != "Placeholder" &&
           node.op != "Variable";
  }

  // Runs before convert(), which might fail at another op and hide that the layer has no
  // conversion.
  void refuseUnknown() const {
    for (const Node& node : graph_.nodes()) {
      if (!isDue(node) || canConvert(node)) continue;
      const model::AddedLayer* const layer = layerOf(node);
      const std::string type =
          layer == nullptr ? "such" : layer->text.substr(0, layer->text.find(' '));
      fail(node, fmt::format("there is no conversion of {} layers (of their operation {})", type,
                             node.op));
    }
  }

  void convert(const Node& node) {
    const Node* const bias = biasOf(node);
    if (bias != nullptr) done_.insert(bias->id);
    try {
      convertOp(values_, node, bias);
    } catch (const yaml::ErrorAt&) {
      throw;
    } catch (const Error& error) {
      fail(node, fmt::format("its operation {}: {}", node.op, error.message()));
    }
  }

  // Returns the only reader of `node` if that adds a variable to it, else null.
  const Node* biasOf(const Node& node) const {
    if (!takesBias(node) || built_.model.logits.node == node.id) return nullptr;
    const Node* reader = nullptr;
    for (const NodeId id : needed_) {
      const Node& other = graph_.node(id);
      for (const Output input : other.inputs) {
        if (input.node != node.id) continue;
        if (reader != nullptr) return nullptr;
        reader = &other;
      }
    }
    const bool adds = reader != nullptr && reader->op == "BiasAdd" &&
                      reader->inputs[0].node == node.id &&
                      values_.weight(reader->inputs[1]) != nullptr;
    return adds ? reader : nullptr;
  }

  // Returns the innermost layer that made the node; null: none did.
  const model::AddedLayer* layerOf(const Node& node) const {
    const model::AddedLayer* found = nullptr;
    for (const model::AddedLayer& layer : built_.model.layers) {
      const bool holds = layer.first_node <= node.id.value && node.id.value < layer.end_node;
      if (holds && (found == nullptr || layer.depth > found->depth)) found = &layer;
    }
    return found;
  }

  [[noreturn]] void fail(const Node& node, const std::string& why) const {
    const model::AddedLayer* const layer = layerOf(node);
    const std::string path = layer == nullptr ? node.name : layer->path;
    const std::string listed = path.substr(0, path.find('/'));
    yaml::Mark mark = trained_.model.mark;
    for (const model::LayerSpec& spec : trained_.model.layers)
      if (spec.name == listed) mark = spec.mark;
    throw yaml::ErrorAt(ErrorCode::kBadConfig, mark,
                        fmt::format("layer '{}' can't be exported to ONNX: {}; .safetensors and "
                                    ".npz hold the variables of any model",
                                    path, why));
  }

  const TrainedModel& trained_;
  const model::InferenceGraph built_;
  const graph::Graph& graph_;
  std::list<std::vector<float>> folded_;  // the values of constant weights
  OnnxValues values_;
  const std::vector<cluster::PreparedColumn> prepared_;  // the features' columns; empty: as fed
  std::set<NodeId> needed_;
  std::set<NodeId> done_;
};

}  // namespace

std::string encodeOnnx(const TrainedModel& trained) {
  return OnnxExport(trained).run();
}

}  // namespace dtf::model_files
