#include "common/engine/registered_part.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/graph/device_partitioner.h"

namespace dtf::engine {
namespace {

using graph::Graph;
using graph::Node;
using graph::Output;

// Returns the plan's numbers for edges between tasks. Edges between devices, whose keys the task's
// graph doesn't have, get numbers in the order of their keys.
EdgeNumbers numberEdges(const TaskPart& part, const std::map<std::string, Graph>& by_device,
                        uint32_t next) {
  EdgeNumbers numbers;
  for (const TaskPart::Edge& edge : part.edges) {
    numbers.emplace(part.graph.node(edge.node).attribute<std::string>("key"), edge.number);
  }
  EdgeNumbers own;
  for (const auto& [device, graph] : by_device) {
    for (const Node& node : graph.nodes()) {
      if (node.op != "_Send") continue;
      const std::string& key = node.attribute<std::string>("key");
      if (!numbers.contains(key)) own.emplace(key, 0);
    }
  }
  for (auto& [key, edge] : own) edge = next++;
  numbers.merge(own);
  return numbers;
}

}  // namespace

RegisteredPart::RegisteredPart(TaskPart part, const PlanDevices& devices, uint32_t first_own_edge,
                               VariableStore& variables, QueueStore& queues)
    : folded_(std::move(part.folded)) {
  const std::map<std::string, Graph> by_device = graph::partitionByDevice(part.graph);
  const EdgeNumbers edges = numberEdges(part, by_device, first_own_edge);
  own_edges_ = static_cast<uint32_t>(edges.size() - part.edges.size());
  std::map<std::string, std::vector<size_t>> fetches_of;  // by device
  for (size_t i = 0; i < part.fetches.size(); ++i) {
    fetches_of[part.graph.node(part.fetches[i].node).device].push_back(i);
    fetch_specs_.push_back(part.graph.spec(part.fetches[i]));
  }
  std::map<std::string, size_t> feed_of;
  for (const std::string& feed : part.feeds) {
    feed_of.emplace(feed, feed_specs_.size());
    const Node* node = part.graph.find(feed);
    DTF_CHECK_MSG(node != nullptr && node->op == "Placeholder", feed);
    feed_specs_.push_back(node->outputs[0]);
  }
  fetches_.resize(part.fetches.size());
  for (const auto& [name, graph] : by_device) {
    std::vector<Output> own;
    for (const size_t i : fetches_of[name]) {
      fetches_[i] = {devices_.size(), own.size()};
      const Node& node = part.graph.node(part.fetches[i].node);
      own.push_back({graph.find(node.name)->id, part.fetches[i].index});
    }
    const auto on = devices.find(name);
    DTF_CHECK_MSG(on != devices.end(), name);
    const SessionDevice& device = on->second.device;
    devices_.push_back(
        {PartProgram(graph, own, *device.device, *device.kernels, edges, device.pool),
         on->second.queue,
         {},
         {},
         {},
         {}});
    bind(devices_.back(), feed_of, variables, queues);
  }
}

void RegisteredPart::bind(Device& device, const std::map<std::string, size_t>& feed_of,
                          VariableStore& variables, QueueStore& queues) {
  for (const PartProgram::Named& feed : device.program.feeds()) {
    const auto folded = folded_.find(feed.name);
    const auto fed = feed_of.find(feed.name);
    DTF_CHECK_MSG((folded == folded_.end()) != (fed == feed_of.end()), feed.name);
    device.folded.push_back(
        fed != feed_of.end() ? Bytes() : Bytes(folded->second.data(), folded->second.bytes()));
    device.feeds.push_back(fed == feed_of.end() ? feed_specs_.size() : fed->second);
  }
  for (const PartProgram::Used& used : device.program.variables())
    device.variables.push_back(variables.use(used.key, used.spec, used.node));
  for (const PartProgram::UsedQueue& used : device.program.queues())
    device.queues.push_back(queues.use(used.key, used.spec, used.node));
}

void RegisteredPart::addStep(std::span<const Bytes> feeds, std::vector<StepPart>& parts,
                             const std::shared_ptr<trace::StepTrace>& trace) {
  DTF_CHECK(feeds.size() == feed_specs_.size());
  for (Device& device : devices_) {
    StepPart step{&device.program, device.queue, {}, trace};
    for (size_t i = 0; i < device.feeds.size(); ++i) {
      const bool is_fed = device.feeds[i] < feeds.size();
      step.inputs.feeds.push_back(is_fed ? feeds[device.feeds[i]] : device.folded[i]);
    }
    for (const auto& variable : device.variables) step.inputs.variables.push_back(variable.get());
    for (const auto& queue : device.queues) step.inputs.queues.push_back(queue.get());
    parts.push_back(std::move(step));
  }
}

Bytes RegisteredPart::fetch(size_t i, std::span<const StepPart> parts) const {
  DTF_CHECK(i < fetches_.size() && parts.size() == devices_.size());
  const StepPart& part = parts[fetches_[i].device];
  return part.program->fetch(fetches_[i].index, part.inputs);
}

}  // namespace dtf::engine
