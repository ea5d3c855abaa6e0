// graph: a part of the network, or all of it, written op by op.
//
// The ops read the layer's input as `input`, and the outputs of the layers in `with` by name. In a
// shape the word `batch` is the number of examples, which differs between training, evaluation and
// prediction. Each Variable is trained; its device, if any, is the ps that holds it.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <span>

#include "common/base/check.h"
#include "common/base/checksum.h"
#include "common/base/ids.h"
#include "common/graph/device_name.h"
#include "common/graph/prune.h"
#include "common/model/graph_reader.h"
#include "common/model/layer_builder.h"
#include "common/model/layers/layers.h"
#include "common/yaml/keys.h"

namespace dtf::model {

namespace {

using graph::Node;
using graph::NodeId;
using graph::Output;
using yaml::YamlNode;

constexpr std::string_view kInput = "input", kLabels = "labels";
constexpr size_t kVariableNameBytesMax = 128;  // without the layer's prefix

constexpr yaml::Key kGraphKeys[] = {
    yaml::required(yaml::list("ops", "each reads `input`, `labels` or ops before it")),
    yaml::required(yaml::text("output", "the tensor that the layer returns")),
    yaml::list("with", "layers before it that the ops read by name"),
    yaml::list("functions", "subgraphs that If and While call, each after the ones that it calls"),
};
constinit const yaml::Table kGraphLayerTable{"train.model.layers.N.graph", kGraphKeys,
                                             &kAnyLayerTable};

bool isVariableName(std::string_view name) {
  return name.size() <= kVariableNameBytesMax &&
         std::isalnum(static_cast<unsigned char>(name[0])) &&
         name.find("..") == std::string_view::npos &&
         std::all_of(name.begin(), name.end(), [](unsigned char c) {
           return std::isalnum(c) || c == '.' || c == '_' || c == '-' || c == '/';
         });
}

std::string variableFault(const Node& variable) {
  if (!isVariableName(variable.name))
    return fmt::format(
        "a Variable's name begins with a letter or digit, has letters, digits, '.', '_', '-' and "
        "'/', "
        "and is at most {} long, got {}",
        kVariableNameBytesMax, yaml::inQuotes(variable.name));
  if (variable.outputs[0].dtype != DType::kFloat32) return "a Variable that is trained is float32";
  for (const std::string_view key : {"shared_name", "container"})
    if (!variable.attribute<std::string>(key).empty())
      return fmt::format("'{}' is for sessions only: leave it out", key);
  if (variable.device.empty()) return "";
  const graph::DeviceName device = graph::DeviceName::parse(variable.device);
  const bool is_ps = device.job ? device.job == jobName(JobKind::kPs) : !device.task;
  if (is_ps && canBeFirstCpu(device)) return "";
  return fmt::format(
      "a Variable lives on a device like /job:ps/task:0 or /job:ps/task:0/cpu:0, got {}",
      yaml::inQuotes(variable.device));
}

// An op's device can only be the worker's own processor; train/device_check.h checks that this is
// where the worker computes.
bool isOwnCpu(const Node& node) {
  const graph::DeviceName device = graph::DeviceName::parse(node.device);
  const bool is_worker = device.job.value_or("worker") == jobName(JobKind::kWorker);
  return is_worker && !device.task && device.type && canBeFirstCpu(device);
}

// Returns the device of a Variable without the CPU, which is the only place there.
std::string psOf(const Node& variable) {
  const graph::DeviceName device = graph::DeviceName::parse(variable.device);
  return graph::DeviceName{.job = device.job, .task = device.task}.str();
}

// Returns why a model can't have the op; empty if it can.
std::string faultOf(const Node& node) {
  if (node.op == "Variable") return variableFault(node);
  if (node.op == "Placeholder")
    return "a Placeholder is fed by a session: a model reads 'input' and the layers in 'with'";
  if (node.op == "Dropout")
    return "masks are drawn in training alone: end the graph here, and put the layer 'dropout' and "
           "another 'graph' behind it";
  if (graph::standardOps().find(node.op)->stateful)
    return fmt::format("{} has a state; in a job only the optimizer changes state", node.op);
  if (!node.device.empty() && !isOwnCpu(node))
    return fmt::format(
        "{} asks for {}: in a job each worker computes the whole model itself, so an op may name "
        "/cpu:0, its worker's, and a Variable its ps; `dtf-launch graph` runs ops where they ask "
        "to be",
        node.op, yaml::inQuotes(node.device));
  return "";
}

bool readsLabels(const graph::Graph& graph, Output output) {
  if (graph.find(kLabels) == nullptr) return false;
  return graph::prune(graph, {}, std::array{output}, {}).graph.find(kLabels) != nullptr;
}

// Keys that may change between runs of a job: the weights keep their meaning.
constexpr std::string_view kPassingKeys[] = {"device", "initializer"};
// Limits of the text: one line for each op. A checksum stands for the rest, as for a long line's
// end.
constexpr size_t kLinesMax = 512;
constexpr size_t kLineBytesMax = 1000;

// Returns the node as a line of YAML in flow style, without the keys `left_out` at any depth.
std::string lineOf(const YamlNode& node, std::span<const std::string_view> left_out) {
  if (!node.isMap() && !node.isSequence()) return node.text;
  std::string line;
  for (const YamlNode& child : node.children) {
    if (std::find(left_out.begin(), left_out.end(), child.key) != left_out.end()) continue;
    if (!line.empty()) line += ", ";
    if (node.isMap()) line += child.key + ": ";
    line += lineOf(child, left_out);
  }
  return node.isMap() ? "{" + line + "}" : "[" + line + "]";
}

std::string bounded(std::string line) {
  if (line.size() <= kLineBytesMax) return line;
  const std::string checksum = hexOf(checksumOf(line));
  line.resize(kLineBytesMax);
  return line + "... " + checksum;
}

class GraphLayer final : public Layer {
 public:
  GraphLayer(YamlNode settings, std::vector<std::string> with, yaml::Report sources)
      : settings_(std::move(settings)), with_(std::move(with)), sources_(std::move(sources)) {}

  // Reads the ops only here: the batch size and the shapes of the inputs are known now.
  Output build(LayerBuilder& layers, Output x) const override {
    yaml::Report report = sources_;
    GraphReader ops(report, layers.batchSize());
    std::vector<Output> inputs = {x};
    ops.addInput(kInput, layers.ops().graph().spec(x));
    for (const std::string& name : with_) {
      inputs.push_back(layers.outputOf(name));
      ops.addInput(name, layers.ops().graph().spec(inputs.back()));
    }
    if (const std::optional<Output> labels = layers.labels()) {
      inputs.push_back(*labels);
      ops.addInput(kLabels, layers.ops().graph().spec(*labels));
    }
    const yaml::MapReader reader(settings_, kGraphLayerTable, "graph", report);
    ops.read(reader);
    std::string name;
    std::optional<Output> output;
    if (reader.text("output", name)) output = ops.findTensor(name, reader.find("output")->where());
    checkOps(ops, report);
    if (output && readsLabels(ops.graph(), *output))
      report.error(reader.find("output")->where(),
                   "'output' depends on 'labels', which a prediction doesn't have: name the tensor "
                   "that the loss compares with the labels");
    report.throwFirst();
    DTF_CHECK(output.has_value() && ops.graph().nodes().size() >= inputs.size());
    return copy(ops, inputs, layers, *output);
  }

  std::string meaning(std::string_view name) const override {
    return textWithout(kPassingKeys, name);
  }
  std::string text(std::string_view name) const override { return textWithout({}, name); }

 private:
  std::string textWithout(std::span<const std::string_view> left_out, std::string_view name) const {
    const std::vector<YamlNode>& ops = settings_.find("ops")->children;
    std::string all = fmt::format("graph {}: output={} ops={}", name,
                                  lineOf(*settings_.find("output"), {}), ops.size());
    for (const std::string_view key : {"with", "functions"})
      if (const YamlNode* const node = settings_.find(key))
        all += "\n  " + bounded(fmt::format("{}: {}", key, lineOf(*node, left_out)));
    std::string rest;
    for (size_t i = 0; i < ops.size(); ++i) {
      const std::string line = "\n  " + bounded(lineOf(ops[i], left_out));
      (i < kLinesMax ? all : rest) += line;
    }
    return rest.empty() ? all : all + "\n  the others: " + hexOf(checksumOf(rest));
  }

  static void checkOps(const GraphReader& ops, yaml::Report& report) {
    for (const Node& node : ops.graph().nodes()) {
      const auto mark = ops.marks().find(node.name);
      if (mark == ops.marks().end()) continue;  // an input, or added by a gradient
      const std::string fault = faultOf(node);
      if (!fault.empty()) report.error(report.placeOf(mark->second), fault);
    }
  }

  Output copy(const GraphReader& ops, std::span<const Output> inputs, LayerBuilder& layers,
              Output output) const {
    std::vector<NodeId> copied;  // by the NodeId in `ops`
    const auto mapped = [&](Output from) -> Output {
      const auto node = static_cast<size_t>(from.node.value);
      return node < inputs.size() ? inputs[node] : Output{copied.at(node), from.index};
    };
    for (const Output& input : inputs) copied.push_back(input.node);
    DTF_CHECK(!copied.empty());
    for (const Node& node : ops.graph().nodes()) {
      if (static_cast<size_t>(node.id.value) < inputs.size()) continue;
      if (node.op == "Variable") {
        const auto device = layers.ops().deviceScope(psOf(node));
        copied.push_back(layers
                             .variable(node.name, node.attribute<Shape>("shape"),
                                       node.attribute<std::string>("initializer"), "initializer")
                             .node);
        if (!node.device.empty()) layers.setDeviceMark(ops.marks().at(node.name));
        continue;
      }
      if (const auto mark = ops.marks().find(node.name);
          mark != ops.marks().end() && !node.device.empty())
        layers.addCpuMark(mark->second);  // a gradient has the device of its op, and no mark
      std::vector<Output> read;
      for (const Output& from : node.inputs) read.push_back(mapped(from));
      std::vector<NodeId> after;
      for (const NodeId from : node.control_inputs) after.push_back(mapped({from}).node);
      copied.push_back(layers.ops().node(node.op, std::move(read), node.attributes, node.name,
                                         std::move(after)));
    }
    return mapped(output);
  }

  const YamlNode settings_;
  const std::vector<std::string> with_;
  const yaml::Report sources_;  // without mistakes: the files that the settings were written in
};

std::shared_ptr<const Layer> readGraph(const LayerType&, const yaml::MapReader& settings) {
  std::vector<std::string> with;
  for (const YamlNode& node : settings.list("with"))
    if (auto name = yaml::readText(node, "with", settings.report()))
      with.push_back(*std::move(name));
  return std::make_shared<const GraphLayer>(settings.node(), std::move(with),
                                            settings.report().withoutMistakes());
}

}  // namespace

LayerType graphLayer() {
  return {"graph", "a part of the network, op by op", &kGraphLayerTable, readGraph};
}

}  // namespace dtf::model
