#include "common/engine/plan.h"

#include <algorithm>
#include <set>
#include <utility>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/base/text.h"
#include "common/engine/fold.h"
#include "common/graph/device_partitioner.h"
#include "common/graph/merge.h"
#include "common/graph/partitioner.h"
#include "common/graph/prune.h"

namespace dtf::engine {
namespace {

using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::Output;

// Borrows: everything it is given, for one call of makePlan.
class Planner {
 public:
  Planner(const Graph& placed, const Signature& signature,
          const std::map<std::string, PlanDevice>& devices, Plan& plan)
      : placed_(placed), signature_(signature), devices_(devices), plan_(plan) {}

  void run() {
    graph::Pruned pruned = prune();
    Folded folded = fold(std::move(pruned));
    const graph::Merged merged = graph::mergeCommon(folded.graph);
    plan_.folded = std::move(folded.values);
    std::vector<Output> fetches;
    for (const Output& fetch : folded.fetches) {
      fetches.push_back({merged.nodes[static_cast<size_t>(fetch.node.value)], fetch.index});
    }
    compile(merged.graph, fetches);
  }

 private:
  graph::Pruned prune() {
    std::vector<Output> feeds, fetches;
    std::vector<NodeId> targets;
    std::set<Output> fed;
    for (const std::string& name : signature_.feeds) {
      const Output feed = graph::findTensor(placed_, name);
      if (!fed.insert(feed).second) {
        throw Error(ErrorCode::kBadConfig, "the tensor '" + name + "' is fed twice");
      }
      feeds.push_back(feed);
      plan_.feed_specs.push_back(placed_.spec(feed));
    }
    for (const std::string& name : signature_.fetches) {
      fetches.push_back(graph::findTensor(placed_, name));
    }
    for (const std::string& name : signature_.targets) {
      targets.push_back(graph::findNode(placed_, name));
    }
    graph::Pruned pruned = graph::prune(placed_, feeds, fetches, targets);
    for (size_t i = 0; i < feeds.size(); ++i) {
      if (pruned.feeds[i]) fed_by_.emplace(pruned.graph.node(pruned.feeds[i]->node).name, i);
    }
    refuseUnfed(pruned.graph);
    return pruned;
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

  // On the first CPU, as a graph without one has no constants that are known beforehand.
  Folded fold(graph::Pruned pruned) const {
    for (const auto& entry : devices_) {
      const PlanDevice& cpu = entry.second;
      if (cpu.device.device->type() != runtime::DeviceType::kCpu) continue;
      Folded folded{.graph = Graph(placed_.catalog()), .fetches = {}, .targets = {}, .values = {}};
      cpu.queue->runHere([&] {
        folded = foldConstants(pruned.graph, pruned.fetches, pruned.targets, *cpu.device.device,
                               *cpu.device.kernels);
      });
      return folded;
    }
    return {std::move(pruned.graph), std::move(pruned.fetches), std::move(pruned.targets), {}};
  }

  // The parts of all tasks, by device.
  std::map<std::string, Graph> partition(const Graph& graph) const {
    graph::Placement placement;
    for (const Node& node : graph.nodes()) {
      const auto device = devices_.find(node.device);
      DTF_CHECK_MSG(device != devices_.end(), node.device);
      placement.devices.push_back(device->second.device.name);
      if (node.op == "Variable") {
        placement.variables.push_back({node.id, node.name, node.outputs[0].shape, {}});
      }
    }
    std::map<std::string, Graph> parts;
    for (const auto& [task, part] : graph::partition(graph, placement)) {
      for (auto& [device, piece] : graph::partitionByDevice(part)) {
        const bool is_new = parts.emplace(device, std::move(piece)).second;
        DTF_CHECK(is_new);  // a device belongs to one task
      }
    }
    return parts;
  }

  static EdgeNumbers number(const std::map<std::string, Graph>& parts) {
    EdgeNumbers edges;
    for (const auto& [device, part] : parts) {
      for (const Node& node : part.nodes()) {
        if (node.op == "_Send") edges.emplace(node.attribute<std::string>("key"), 0);
      }
    }
    uint32_t next = 0;
    for (auto& [key, edge] : edges) edge = next++;  // in order of keys: alike wherever it is done
    return edges;
  }

  void compile(const Graph& graph, const std::vector<Output>& fetches) {
    const std::map<std::string, Graph> parts = partition(graph);
    const EdgeNumbers edges = number(parts);
    std::map<std::string, std::vector<size_t>> fetches_of;  // by device: indices into `fetches`
    for (size_t i = 0; i < fetches.size(); ++i) {
      fetches_of[graph.node(fetches[i].node).device].push_back(i);
    }
    plan_.fetches.resize(fetches.size());
    for (const auto& [device, part] : parts) {
      std::vector<Output> own;
      for (const size_t i : fetches_of[device]) {
        plan_.fetches[i] = {plan_.parts.size(), own.size(), graph.spec(fetches[i])};
        own.push_back({part.find(graph.node(fetches[i].node).name)->id, fetches[i].index});
      }
      const PlanDevice& on = devices_.at(device);
      plan_.parts.push_back(
          {PartProgram(part, own, *on.device.device, *on.device.kernels, edges), on.queue, {}});
      bindFeeds(plan_.parts.back());
    }
  }

  void bindFeeds(Plan::Part& part) const {
    for (const PartProgram::Named& feed : part.program.feeds()) {
      const auto fed = fed_by_.find(feed.name);
      DTF_CHECK_MSG((fed != fed_by_.end()) != plan_.folded.contains(feed.name), feed.name);
      part.feeds.push_back(fed == fed_by_.end() ? Plan::Part::kFolded : fed->second);
    }
  }

  const Graph& placed_;
  const Signature& signature_;
  const std::map<std::string, PlanDevice>& devices_;
  Plan& plan_;
  std::map<std::string, size_t> fed_by_;  // by Placeholder: index into Signature::feeds
};

}  // namespace

void makePlan(const Graph& placed, const Signature& signature,
              const std::map<std::string, PlanDevice>& devices, Plan& plan) {
  Planner(placed, signature, devices, plan).run();
}

}  // namespace dtf::engine
