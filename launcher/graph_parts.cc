#include "launcher/graph_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "common/base/check.h"
#include "common/base/text.h"
#include "launcher/dot_text.h"

namespace dtf::launcher {

namespace {

using engine::TaskPart;
using graph::Node;
using graph::Output;

std::string nameOf(const graph::Graph& graph, Output output) {
  return fmt::format("{}:{}", graph.node(output.node).name, output.index);
}

uint64_t bytesOf(const graph::Graph& graph, Output output) {
  const graph::TensorSpec& spec = graph.spec(output);
  return static_cast<uint64_t>(spec.shape.elements()) * dtypeBytes(spec.dtype);
}

bool isTransfer(const Node& node) {
  return node.op == "_Send" || node.op == "_Recv";
}

// What reads a received tensor, or waits for it.
std::vector<std::string> readersOf(const graph::Graph& graph, graph::NodeId recv) {
  std::vector<std::string> readers;
  for (const Node& node : graph.nodes()) {
    const bool reads = std::any_of(node.inputs.begin(), node.inputs.end(),
                                   [&](const Output& input) { return input.node == recv; });
    const bool waits = std::find(node.control_inputs.begin(), node.control_inputs.end(), recv) !=
                       node.control_inputs.end();
    if (reads || waits) readers.push_back(node.name);
  }
  return readers;
}

size_t opsOf(const TaskPart& part) {
  return static_cast<size_t>(std::count_if(part.graph.nodes().begin(), part.graph.nodes().end(),
                                           [](const Node& node) { return !isTransfer(node); }));
}

// The nodes of a part, in a box for each device, and the edges within it.
std::string dotOf(const TaskPart& part) {
  std::map<std::string, std::string> boxes;
  std::string edges;
  const auto is_drawn = [](const Node& node) { return !isTransfer(node); };
  for (const Node& node : part.graph.nodes()) {
    if (!is_drawn(node)) continue;
    boxes[node.device] += dotNode(node.name, node.name + "\n" + node.op);
    edges += dotEdgesTo(part.graph, node, is_drawn);
  }
  return dotBoxes(boxes) + edges;
}

}  // namespace

std::vector<SentTensor> sentTensors(const std::vector<TaskPart>& parts) {
  std::map<uint32_t, SentTensor> sent;
  for (const TaskPart& part : parts) {
    for (const TaskPart::Edge& edge : part.edges) {
      const Node& node = part.graph.node(edge.node);
      DTF_CHECK(isTransfer(node));
      SentTensor& tensor = sent[edge.number];
      if (node.op == "_Send") {
        tensor.tensor = nameOf(part.graph, node.inputs.at(0));
        tensor.bytes = bytesOf(part.graph, node.inputs[0]);
        tensor.from = part.task;
        tensor.to = edge.peer;
      } else {
        tensor.readers = readersOf(part.graph, edge.node);
      }
    }
  }
  std::vector<SentTensor> in_order;
  for (auto& [number, tensor] : sent) in_order.push_back(std::move(tensor));
  return in_order;
}

std::string partsText(const std::vector<TaskPart>& parts) {
  const std::vector<SentTensor> sent = sentTensors(parts);
  std::string text;
  uint64_t bytes = 0;
  for (const TaskPart& part : parts) {
    text += fmt::format("{}: {} ops\n", part.task.name(), opsOf(part));
    for (const SentTensor& tensor : sent) {
      if (tensor.from != part.task) continue;
      text += fmt::format("  sends {} to {}, {}\n", tensor.tensor, tensor.to.name(),
                          bytesText(tensor.bytes));
      bytes += tensor.bytes;
    }
    for (const Output& fetch : part.fetches)
      text += fmt::format("  answers with {}, {}\n", nameOf(part.graph, fetch),
                          bytesText(bytesOf(part.graph, fetch)));
  }
  return text +
         fmt::format("a step sends {} tensors between tasks, {}\n", sent.size(), bytesText(bytes));
}

Json partsJson(const std::vector<TaskPart>& parts) {
  const std::vector<SentTensor> sent = sentTensors(parts);
  auto list = Json::array();
  for (const TaskPart& part : parts) {
    auto sends = Json::array(), answers = Json::array();
    for (const SentTensor& tensor : sent)
      if (tensor.from == part.task)
        sends.push_back({{"tensor", tensor.tensor},
                         {"to", tensor.to.name()},
                         {"bytes", tensor.bytes},
                         {"readers", tensor.readers}});
    for (const Output& fetch : part.fetches)
      answers.push_back(
          {{"tensor", nameOf(part.graph, fetch)}, {"bytes", bytesOf(part.graph, fetch)}});
    list.push_back({{"task", part.task.name()},
                    {"ops", opsOf(part)},
                    {"sends", std::move(sends)},
                    {"answers", std::move(answers)}});
  }
  return list;
}

std::string partsDot(const std::vector<TaskPart>& parts) {
  std::string text = "digraph step {\n  node [shape=box];\n";
  for (const TaskPart& part : parts) text += dotOf(part);
  for (const SentTensor& tensor : sentTensors(parts)) {
    const std::string from = tensor.tensor.substr(0, tensor.tensor.rfind(':'));
    for (const std::string& reader : tensor.readers)
      text += dotEdge(from, reader, "label=" + dotQuoted(bytesText(tensor.bytes)) + ", penwidth=2");
  }
  return text + "}\n";
}

}  // namespace dtf::launcher
