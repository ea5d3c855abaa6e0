#include "launcher/step_graph.h"

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

bool isPush(const Node& node) {
  return node.op == "_Push" || node.op == "_PushSparse";
}

// Neither is an op that computes.
bool isExchange(const Node& node) {
  return node.op == "_Pull" || isPush(node);
}

std::string givenText(const Node& node) {
  std::vector<std::string> specs;
  for (const graph::TensorSpec& spec : node.outputs)
    specs.push_back(std::string(dtypeName(spec.dtype)) + spec.shape.str());
  return specs.empty() ? "-" : join(specs, " ");
}

std::vector<std::string> readersOfNode(const graph::Graph& graph, graph::NodeId of) {
  std::vector<std::string> readers;
  for (const Node& node : graph.nodes())
    if (std::any_of(node.inputs.begin(), node.inputs.end(),
                    [&](const Output& input) { return input.node == of; }))
      readers.push_back(node.name);
  return readers;
}

// What passes in a step between the worker and one ps.
struct PsTraffic {
  uint64_t pulled = 0, pushed_max = 0;
  bool has_rows = false;  // so it may be less
};

std::map<TaskId, PsTraffic> trafficOf(const std::vector<ExchangedVariable>& variables) {
  std::map<TaskId, PsTraffic> traffic;
  for (const ExchangedVariable& variable : variables) {
    for (const auto& share : variable.shares) {
      PsTraffic& ps = traffic[share.ps];
      ps.has_rows |= variable.is_pushed_as_rows;
      ps.pulled += share.bytes;  // it answers with its whole shard
      // The rows of a table may all be of one of its parts.
      if (!variable.pusher.empty())
        ps.pushed_max += variable.is_pushed_as_rows ? variable.pushed_bytes_max : share.bytes;
    }
  }
  return traffic;
}

std::string psText(const std::vector<ExchangedVariable>& variables) {
  std::string text;
  for (const auto& [ps, traffic] : trafficOf(variables)) {
    text += fmt::format("{}: in a step, sends {} to and receives {}{} from each worker\n",
                        ps.name(), bytesText(traffic.pulled), traffic.has_rows ? "at most " : "",
                        bytesText(traffic.pushed_max));
    for (const ExchangedVariable& variable : variables)
      for (const auto& share : variable.shares)
        if (share.ps == ps)
          text += fmt::format("  {}{}, {}\n", variable.name,
                              variable.shares.size() > 1 ? ", a part of it" : "",
                              bytesText(share.bytes));
  }
  return text;
}

}  // namespace

std::vector<ExchangedVariable> exchangedVariables(const TaskPart& part,
                                                  const graph::Placement& placement,
                                                  const ShardHosts& hosts) {
  std::map<std::string, ExchangedVariable> by_name;
  for (const Node& node : part.graph.nodes()) {
    if (!isExchange(node)) continue;
    ExchangedVariable& variable = by_name[node.attribute<std::string>("variable")];
    if (node.op == "_Pull") {
      variable.readers = readersOfNode(part.graph, node.id);
      variable.pulled_bytes =
          static_cast<uint64_t>(node.outputs[0].shape.elements()) * sizeof(float);
    } else {
      variable.pusher = part.graph.node(node.inputs.at(0).node).name;
      variable.is_pushed_as_rows = node.op == "_PushSparse";
    }
  }
  std::vector<ExchangedVariable> in_order;
  for (const graph::PlacedVariable& placed : placement.variables) {
    const auto found = by_name.find(placed.name);
    if (found == by_name.end()) continue;
    ExchangedVariable& variable = in_order.emplace_back(std::move(found->second));
    variable.name = placed.name;
    if (!variable.pusher.empty()) variable.pushed_bytes_max = placed.gradientBytesMax();
    for (const graph::VariablePart& share : placed.parts)
      variable.shares.push_back({hosts.of(share.ps_task), share.count * sizeof(float)});
  }
  DTF_CHECK(in_order.size() == by_name.size());
  return in_order;
}

std::string stepText(const TaskPart& part, const graph::Placement& placement,
                     const ShardHosts& hosts) {
  size_t op_width = 2, name_width = 4, given_width = 5, ops = 0;
  for (const Node& node : part.graph.nodes()) {
    op_width = std::max(op_width, node.op.size());
    name_width = std::max(name_width, node.name.size());
    given_width = std::max(given_width, givenText(node).size());
    ops += !isExchange(node);
  }
  const std::vector<ExchangedVariable> variables = exchangedVariables(part, placement, hosts);
  std::string text = fmt::format("{}: {} ops in a step, fed {}\n", part.task.name(), ops,
                                 part.feeds.empty() ? "nothing" : join(part.feeds, ", "));
  for (const Node& node : part.graph.nodes())
    text += fmt::format("  {:<{}}  {:<{}}  {:<{}}  {}\n", node.op, op_width, node.name, name_width,
                        givenText(node), given_width, node.device);
  uint64_t pulled = 0, pushed = 0;
  bool has_rows = false;
  for (const ExchangedVariable& variable : variables) {
    for (const auto& share : variable.shares) pulled += share.bytes;
    pushed += variable.pushed_bytes_max;
    has_rows |= variable.is_pushed_as_rows;
  }
  return text + psText(variables) +
         fmt::format(
             "a step of a worker pulls {} variables, {}, and pushes their gradients, {}{}\n",
             variables.size(), bytesText(pulled), has_rows ? "at most " : "", bytesText(pushed));
}

Json stepJson(const TaskPart& part, const graph::Placement& placement, const ShardHosts& hosts) {
  auto ops = Json::array(), exchanged = Json::array();
  for (const Node& node : part.graph.nodes()) {
    auto inputs = Json::array(), outputs = Json::array();
    for (const Output& input : node.inputs)
      inputs.push_back(fmt::format("{}:{}", part.graph.node(input.node).name, input.index));
    for (const graph::TensorSpec& spec : node.outputs)
      outputs.push_back({{"dtype", dtypeName(spec.dtype)}, {"shape", spec.shape.dims()}});
    ops.push_back({{"name", node.name},
                   {"op", node.op},
                   {"device", node.device},
                   {"inputs", inputs},
                   {"outputs", outputs}});
  }
  for (const ExchangedVariable& variable : exchangedVariables(part, placement, hosts)) {
    auto shares = Json::array();
    for (const auto& share : variable.shares)
      shares.push_back({{"ps", share.ps.name()}, {"bytes", share.bytes}});
    exchanged.push_back({{"variable", variable.name},
                         {"shares", shares},
                         {"pulled_bytes", variable.pulled_bytes},
                         {"pushed_bytes_max", variable.pushed_bytes_max},
                         {"rows", variable.is_pushed_as_rows},
                         {"readers", variable.readers},
                         {"gradient", variable.pusher}});
  }
  return {{"task", part.task.name()},
          {"feeds", part.feeds},
          {"ops", std::move(ops)},
          {"exchanged", std::move(exchanged)}};
}

std::string stepDot(const TaskPart& part, const graph::Placement& placement,
                    const ShardHosts& hosts) {
  std::map<std::string, std::string> boxes;
  std::string edges;
  const auto is_drawn = [](const Node& node) { return !isExchange(node); };
  for (const Node& node : part.graph.nodes()) {
    if (!is_drawn(node)) continue;
    boxes[node.device] += dotNode(node.name, node.name + "\n" + node.op);
    edges += dotEdgesTo(part.graph, node, is_drawn);
  }
  for (const ExchangedVariable& variable : exchangedVariables(part, placement, hosts)) {
    for (const auto& share : variable.shares) {
      const std::string id = share.ps.name() + " " + variable.name;
      boxes[share.ps.device()] += dotNode(id, variable.name + "\n" + bytesText(share.bytes));
      for (const std::string& reader : variable.readers)
        edges += dotEdge(id, reader, "penwidth=2, label=" + dotQuoted(bytesText(share.bytes)));
      if (!variable.pusher.empty())
        edges += dotEdge(variable.pusher, id, "penwidth=2, style=dotted, constraint=false");
    }
  }
  return "digraph step {\n  node [shape=box];\n" + dotBoxes(boxes) + edges + "}\n";
}

}  // namespace dtf::launcher
