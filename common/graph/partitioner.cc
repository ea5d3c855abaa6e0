#include "common/graph/partitioner.h"

#include <optional>
#include <utility>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/graph/transfer.h"

namespace dtf::graph {
namespace {

// Splits one graph.
// Borrows: the graph and its placement, for one call of partition().
class Partitioner {
 public:
  Partitioner(const Graph& graph, const Placement& placement)
      : graph_(graph), placement_(placement) {}

  std::map<TaskId, Graph> run() {
    DTF_CHECK(placement_.devices.size() == graph_.nodes().size());
    for (const Node& node : graph_.nodes()) homes_.push_back(homeOf(node));
    for (const Node& node : graph_.nodes()) addNode(node);
    return std::move(parts_);
  }

 private:
  // The task of an earlier node: homes are computed in the nodes' order.
  TaskId home(NodeId node) const {
    DTF_CHECK(node.value >= 0 && std::cmp_less(node.value, homes_.size()));
    return homes_[static_cast<size_t>(node.value)];
  }
  Graph& part(TaskId task) { return parts_.try_emplace(task, graph_.catalog()).first->second; }

  // Returns whether `reader` accesses the variable through _Pull and _Push, not as a node of its
  // own graph.
  bool isRemote(const PlacedVariable& variable, TaskId reader) const {
    return variable.parts.size() > 1 ||
           (variable.parts.size() == 1 && home(variable.node) != reader);
  }

  // Returns the task that runs a node. A gradient for another ps is sent by the task that computes
  // it.
  TaskId homeOf(const Node& node) const {
    const TaskId placed = placement_.device(node.id).taskId().value();
    if (!appliesGradient(node)) return placed;
    const PlacedVariable* variable = placement_.variable(node.inputs[0].node);
    DTF_CHECK(variable != nullptr);
    const TaskId gradient = home(node.inputs[1].node);
    return isRemote(*variable, gradient) ? gradient : placed;
  }

  void addNode(const Node& node) {
    const TaskId task = home(node.id);
    DTF_CHECK(!copies_.contains({node.id, task}));
    const PlacedVariable* variable = placement_.variable(node.id);
    if (variable != nullptr && !variable->parts.empty() && !node.control_inputs.empty()) {
      throw Error(ErrorCode::kBadConfig,
                  "node '" + node.name +
                      "' (Variable) lives on ps and has control inputs: it is not "
                      "computed in a step, so it cannot wait for one; put them on its readers");
    }
    const std::string device = deviceOn(node, task);
    NodeDef def{.name = node.name,
                .op = node.op,
                .inputs = {},
                .attributes = node.attributes,
                .control_inputs = {},
                .device = device};
    if (appliesGradient(node) && isRemote(*placement_.variable(node.inputs[0].node), task)) {
      def.op = node.op == "ApplyGradient" ? "_Push" : "_PushSparse";
      def.attributes = {{"variable", graph_.node(node.inputs[0].node).name}};
      for (size_t i = 1; i < node.inputs.size(); ++i)
        def.inputs.push_back(read(node.inputs[i], task, device));
    } else {
      for (const Output& input : node.inputs) def.inputs.push_back(read(input, task, device));
    }
    for (const NodeId before : node.control_inputs) {
      if (const auto waited = waitFor(before, task, device)) def.control_inputs.push_back(*waited);
    }
    copies_[{node.id, task}] = part(task).addNode(std::move(def));
  }

  // Returns the device of a node's copy in `task`: a _Push has the device of its gradient, every
  // other node its placement.
  std::string deviceOn(const Node& node, TaskId task) const {
    const DeviceName& placed = placement_.device(node.id);
    if (placed.taskId() == task) return placed.str();
    DTF_CHECK_MSG(appliesGradient(node), node.name);
    return placement_.device(node.inputs[1].node).str();
  }

  // Returns the tensor in the part of `task`, for a reader on `device`.
  Output read(const Output& source, TaskId task, const std::string& device) {
    const PlacedVariable* variable = placement_.variable(source.node);
    if (variable != nullptr && isRemote(*variable, task)) return {pull(*variable, task, device)};
    if (home(source.node) == task) return {copies_.at({source.node, task}), source.index};
    const auto known = received_.find({source, task});
    if (known != received_.end()) return known->second;
    const std::string edge = graph_.node(source.node).name + ":" + std::to_string(source.index);
    const Output local{copies_.at({source.node, home(source.node)}), source.index};
    const Output arrived = transfer(source.node, local, task, device, edge);
    received_.emplace(std::pair(source, task), arrived);
    return arrived;
  }

  NodeId pull(const PlacedVariable& variable, TaskId task, const std::string& device) {
    const auto known = pulls_.find({variable.node, task});
    if (known != pulls_.end()) return known->second;
    DTF_CHECK_MSG(!variable.parts.empty(), variable.name);
    // The node of a split variable may be in this same part, under the variable's name.
    const bool name_taken = home(variable.node) == task;
    NodeDef def;
    def.name = name_taken ? graph_.uniqueName(variable.name + "/pull") : variable.name;
    def.op = "_Pull";
    def.attributes = {{"variable", variable.name}, {"shape", variable.shape}};
    def.device = device;
    const NodeId id = part(task).addNode(std::move(def));
    pulls_.emplace(std::pair(variable.node, task), id);
    return id;
  }

  // Returns the node in `task`'s part that ends after `before`; nullopt if there is nothing to wait
  // for.
  std::optional<NodeId> waitFor(NodeId before, TaskId task, const std::string& device) {
    const PlacedVariable* variable = placement_.variable(before);
    if (variable != nullptr && isRemote(*variable, task)) return std::nullopt;
    if (home(before) == task) return copies_.at({before, task});
    const auto known = waits_.find({before, task});
    if (known != waits_.end()) return known->second;
    const TaskId source_task = home(before);
    const Node& node = graph_.node(before);
    const Output scalar = addDone(part(source_task), copies_.at({before, source_task}),
                                  graph_.uniqueName(node.name + "/done_for_" + taskText(task)),
                                  deviceOn(node, source_task));
    const Output arrived = transfer(before, scalar, task, device, "^" + node.name);
    waits_.emplace(std::pair(before, task), arrived.node);
    return arrived.node;
  }

  // Adds a _Send of `local` to the part of `from`'s task and its _Recv to `task`'s.
  Output transfer(NodeId from, const Output& local, TaskId task, const std::string& device,
                  const std::string& edge) {
    const TaskId source_task = home(from);
    DTF_CHECK(source_task != task);  // a task can't wait for itself
    return addTransfer(part(source_task), local, part(task),
                       {.edge = edge,
                        .source_device = deviceOn(graph_.node(from), source_task),
                        .reader_device = device,
                        .send_name = graph_.uniqueName(edge + "/send_to_" + taskText(task)),
                        .recv_name = graph_.uniqueName(edge + "/recv")});
  }

  static std::string taskText(TaskId task) {
    return std::string(jobName(task.job)) + "_" + std::to_string(task.index);
  }

  const Graph& graph_;
  const Placement& placement_;
  std::vector<TaskId> homes_;  // by NodeId
  std::map<TaskId, Graph> parts_;
  std::map<std::pair<NodeId, TaskId>, NodeId> copies_;
  std::map<std::pair<NodeId, TaskId>, NodeId> pulls_;
  std::map<std::pair<NodeId, TaskId>, NodeId> waits_;
  std::map<std::pair<Output, TaskId>, Output> received_;
};

}  // namespace

std::map<TaskId, Graph> partition(const Graph& graph, const Placement& placement) {
  return Partitioner(graph, placement).run();
}

}  // namespace dtf::graph
