#include "common/engine/plan.h"

#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/base/text.h"
#include "common/engine/fold.h"
#include "common/graph/function.h"
#include "common/graph/merge.h"
#include "common/graph/partitioner.h"
#include "common/graph/prune.h"
#include "common/graph/queue.h"

namespace dtf::engine {
namespace {

using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::Output;

// Borrows: all constructor arguments, for one call of makePlan().
class Planner {
 public:
  Planner(const Graph& placed, const Signature& signature, const WithCpu& with_cpu,
          std::span<const graph::PlacedVariable> parameters)
      : placed_(placed), signature_(signature), with_cpu_(with_cpu) {
    for (const graph::PlacedVariable& variable : parameters)
      parameters_.emplace(variable.name, &variable);
  }

  Plan run() {
    graph::Pruned pruned = prune();
    Folded folded = fold(std::move(pruned));
    const graph::Merged merged = graph::mergeCommon(folded.graph);
    std::vector<Output> fetches;
    for (const Output& fetch : folded.fetches) {
      fetches.push_back({merged.nodes[static_cast<size_t>(fetch.node.value)], fetch.index});
    }
    partition(merged.graph, std::move(folded.values));
    findFetches(merged.graph, fetches);
    return std::move(plan_);
  }

 private:
  graph::Pruned prune() {
    std::vector<Output> feeds, fetches;
    std::vector<NodeId> targets;
    std::set<Output> fed;
    for (const std::string& name : signature_.feeds) {
      const Output feed = findValue(name);
      if (!fed.insert(feed).second) {
        throw Error(ErrorCode::kBadConfig, "the tensor '" + name + "' is fed twice");
      }
      feeds.push_back(feed);
      plan_.feed_specs.push_back(placed_.spec(feed));
    }
    for (const std::string& name : signature_.fetches) {
      fetches.push_back(findValue(name));
    }
    for (const std::string& name : signature_.targets) {
      // "node:0" means the node, even if it has no outputs.
      const bool is_first = name.ends_with(":0");
      targets.push_back(
          graph::findNode(placed_, is_first ? name.substr(0, name.size() - 2) : name));
    }
    graph::Pruned pruned = graph::prune(placed_, feeds, fetches, targets);
    for (size_t i = 0; i < feeds.size(); ++i) {
      if (pruned.feeds[i]) fed_by_.emplace(pruned.graph.node(pruned.feeds[i]->node).name, i);
    }
    refuseUnfed(pruned.graph);
    refuseFedVariables(pruned.graph);
    refuseManyCalled(pruned.graph);
    return pruned;
  }

  Output findValue(const std::string& name) const {
    const Output output = graph::findTensor(placed_, name);
    if (!graph::isQueue(placed_.node(output.node))) return output;
    throw Error(ErrorCode::kBadConfig, "'" + name +
                                           "' is a queue, which has no value to be fed or fetched: "
                                           "QueueDequeue takes its elements");
  }

  // An op on a variable needs the variable, not a fed value in its place.
  static void refuseFedVariables(const Graph& needed) {
    for (const Node& node : needed.nodes()) {
      for (const Output& input : graph::variablesOf(node)) {
        if (needed.node(input.node).op == "Variable") continue;
        throw Error(ErrorCode::kBadConfig, "node '" + node.name + "' (" + node.op +
                                               ") acts on a variable that is fed in its stead");
      }
    }
  }

  void refuseUnfed(const Graph& needed) const {
    std::vector<std::string> missing;
    for (const Node& node : needed.nodes()) {
      if (node.op == "Placeholder" && !fed_by_.contains(node.name)) {
        missing.push_back("'" + node.name + "'");
      }
    }
    if (missing.empty()) return;
    throw Error(ErrorCode::kBadConfig,
                "the step needs values that it is not fed: " + join(missing, ", "));
  }

  // Checks the size of functions before any pass expands them, once for each caller.
  static void refuseManyCalled(const Graph& needed) {
    constexpr uint64_t kMost = graph::Function::kNodesMax;
    uint64_t nodes = 0;
    for (const Node& node : needed.nodes()) {
      nodes += graph::calledNodes(node);
      if (nodes <= kMost) continue;
      throw Error(ErrorCode::kBadConfig,
                  "node '" + node.name + "' (" + node.op +
                      "): with it the functions that the step calls have " + std::to_string(nodes) +
                      " nodes, each counted once for each call; the most is " +
                      std::to_string(kMost));
    }
  }

  // Folds constants; does nothing without a CPU.
  Folded fold(graph::Pruned pruned) const {
    Folded folded{.graph = Graph(placed_.catalog()), .fetches = {}, .targets = {}, .values = {}};
    const bool has_cpu =
        with_cpu_([&](runtime::Device& device, const runtime::KernelTable& kernels) {
          folded = foldConstants(pruned.graph, pruned.fetches, pruned.targets, device, kernels);
        });
    if (has_cpu) return folded;
    return {std::move(pruned.graph), std::move(pruned.fetches), std::move(pruned.targets), {}};
  }

  // Returns the devices of the nodes, which all passes have kept.
  graph::Placement placementOf(const Graph& graph) const {
    std::map<std::string_view, graph::DeviceName> devices;
    graph::Placement placement;
    for (const Node& node : graph.nodes()) {
      auto device = devices.find(node.device);
      if (device == devices.end()) {
        device = devices.emplace(node.device, graph::DeviceName::parse(node.device)).first;
        DTF_CHECK_MSG(device->second.taskId().has_value(), node.name);
      }
      placement.devices.push_back(device->second);
      if (node.op != "Variable") continue;
      placement.variables.push_back({node.id, node.name, node.outputs[0].shape, {}});
      const auto parameter = parameters_.find(node.name);
      if (parameter != parameters_.end())
        placement.variables.back().parts = parameter->second->parts;
    }
    return placement;
  }

  void partition(const Graph& graph, std::map<std::string, Tensor> folded) {
    for (auto& [task, part] : graph::partition(graph, placementOf(graph))) {
      plan_.parts.push_back({.task = task,
                             .graph = std::move(part),
                             .fetches = {},
                             .feeds = {},
                             .folded = {},
                             .edges = {},
                             .edges_total = 0});
      findFeeds(folded);
    }
    numberEdges();
  }

  // Finds the feeds of the newest part, and its folded values.
  void findFeeds(std::map<std::string, Tensor>& folded) {
    TaskPart& part = plan_.parts.back();
    plan_.feeds.emplace_back();
    for (const Node& node : part.graph.nodes()) {
      if (node.op != "Placeholder") continue;
      const auto fed = fed_by_.find(node.name);
      const auto known = folded.find(node.name);
      DTF_CHECK_MSG((fed != fed_by_.end()) != (known != folded.end()), node.name);
      if (fed != fed_by_.end()) {
        part.feeds.push_back(node.name);
        plan_.feeds.back().push_back(fed->second);
      } else {
        part.folded.emplace(node.name, std::move(known->second));
        folded.erase(known);  // a placeholder is on one device; others receive it
      }
    }
  }

  // Numbers edges in the order of their keys, the same in every process.
  void numberEdges() {
    struct Ends {
      uint32_t number = 0;
      TaskId sender, receiver;
    };
    std::map<std::string, Ends> edges;
    for (const TaskPart& part : plan_.parts) {
      for (const Node& node : part.graph.nodes()) {
        if (node.op == "_Send") edges[node.attribute<std::string>("key")].sender = part.task;
        if (node.op == "_Recv") edges[node.attribute<std::string>("key")].receiver = part.task;
      }
    }
    uint32_t next = 0;
    for (auto& [key, ends] : edges) ends.number = next++;
    for (TaskPart& part : plan_.parts) {
      part.edges_total = next;
      for (const Node& node : part.graph.nodes()) {
        if (node.op != "_Send" && node.op != "_Recv") continue;
        const Ends& ends = edges.at(node.attribute<std::string>("key"));
        part.edges.push_back(
            {node.id, ends.number, node.op == "_Send" ? ends.receiver : ends.sender});
      }
    }
  }

  void findFetches(const Graph& graph, const std::vector<Output>& fetches) {
    for (const Output& fetch : fetches) {
      const Node& node = graph.node(fetch.node);
      for (size_t p = 0; p < plan_.parts.size(); ++p) {
        TaskPart& part = plan_.parts[p];
        if (graph::DeviceName::parse(node.device).taskId() != part.task) continue;
        plan_.fetches.push_back({p, part.fetches.size()});
        part.fetches.push_back({part.graph.find(node.name)->id, fetch.index});
      }
    }
    DTF_CHECK(plan_.fetches.size() == fetches.size());  // a device belongs to one task
  }

  const Graph& placed_;
  const Signature& signature_;
  const WithCpu& with_cpu_;
  std::map<std::string_view, const graph::PlacedVariable*> parameters_;  // by name
  Plan plan_;
  std::map<std::string, size_t> fed_by_;  // by Placeholder: index into Signature::feeds
};

}  // namespace

Plan makePlan(const Graph& placed, const Signature& signature, const WithCpu& with_cpu,
              std::span<const graph::PlacedVariable> parameters) {
  return Planner(placed, signature, with_cpu, parameters).run();
}

Plan makePlan(const Graph& placed, const Signature& signature, Tasks& tasks) {
  return makePlan(placed, signature,
                  [&tasks](const Tasks::UseCpu& use) { return tasks.withCpu(use); });
}

}  // namespace dtf::engine
