#include "common/graph/placer.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/base/text.h"

namespace dtf::graph {
namespace {

// Merges `constraint` over the worker's device. The hardware fields of the worker's device do not
// apply to another task.
DeviceName onWorkerOrElsewhere(const DeviceName& worker, const DeviceName& constraint) {
  DeviceName base = worker;
  const bool other_job = constraint.job && constraint.job != worker.job;
  const bool other_task = constraint.task && constraint.task != worker.task;
  if (other_job) base.task = 0;
  if (other_job || other_task || (constraint.type && constraint.type != worker.type))
    base.index = 0;
  if (other_job || other_task) base.type = "CPU";
  return base.mergedWith(constraint);
}

// The running state of a strategy.
class Dealer {
 public:
  Dealer(PlacementStrategy strategy, uint32_t ps_tasks) : strategy_(strategy), loads_(ps_tasks) {}

  void load(uint32_t ps_task, uint64_t bytes) {
    DTF_CHECK(ps_task < loads_.size());
    loads_[ps_task] += bytes;
  }

  uint32_t next(uint64_t bytes) {
    DTF_CHECK(!loads_.empty());
    if (strategy_ == PlacementStrategy::kRoundRobin) {
      return static_cast<uint32_t>(counter_++ % loads_.size());
    }
    const auto lightest = std::min_element(loads_.begin(), loads_.end());  // the first of equals
    *lightest += bytes;
    return static_cast<uint32_t>(lightest - loads_.begin());
  }

 private:
  const PlacementStrategy strategy_;
  std::vector<uint64_t> loads_;  // bytes per ps task
  uint64_t counter_ = 0;
};

// Returns blocks of `block` elements; the last one may be shorter.
std::vector<VariablePart> splitEvenly(uint64_t elements, uint64_t block, uint32_t ps_tasks) {
  DTF_CHECK(ps_tasks > 0 && block > 0);
  const uint64_t blocks = (elements + block - 1) / block;
  std::vector<VariablePart> parts;
  uint64_t begin = 0;
  for (uint32_t ps = 0; ps < ps_tasks; ++ps) {
    // The first blocks % ps_tasks tasks get one more block.
    const uint64_t share = blocks / ps_tasks + (ps < blocks % ps_tasks ? 1 : 0);
    const uint64_t count = std::min(share * block, elements - begin);
    if (count > 0) parts.push_back({ps, begin, count});
    begin += count;
  }
  DTF_CHECK(begin == elements);  // every element has a ps
  return parts;
}

// Places one graph.
// Borrows: the graph and the options, for one call of place().
class Placer {
 public:
  Placer(const Graph& graph, const PlacerOptions& options)
      : graph_(graph), options_(options), dealer_(options.strategy, options.ps_tasks) {}

  Placement run() {
    checkPins();
    placement_.ps_tasks = options_.ps_tasks;
    placement_.devices.resize(graph_.nodes().size());
    for (const Node& node : graph_.nodes()) {
      if (node.op == "Variable") addVariable(node);
      if (node.op == "ApplySparseGradient") markSparse(node);
    }
    // Two passes: later pins count before the first variable is distributed.
    for (PlacedVariable& variable : placement_.variables) placePinned(variable);
    for (PlacedVariable& variable : placement_.variables) deal(variable);
    for (const Node& node : graph_.nodes()) placeOther(node);
    return std::move(placement_);
  }

 private:
  void checkPins() const {
    for (const auto& [name, device] : options_.pins) {
      const Node* node = graph_.find(name);
      if (node != nullptr && node->op == "Variable") continue;
      std::vector<std::string_view> names;
      for (const Node& candidate : graph_.nodes()) {
        if (candidate.op == "Variable") names.push_back(candidate.name);
      }
      const std::string nearest = nearestWord(name, names);
      throw Error(ErrorCode::kBadConfig,
                  "placement pins '" + name + "' to " + device +
                      ", but the model has no such variable" +
                      (nearest.empty() ? "" : " - did you mean '" + nearest + "'?"));
    }
  }

  DeviceName constraintOf(const Node& node) const {
    const DeviceName own = DeviceName::parse(node.device);
    const auto pin = options_.pins.find(node.name);
    DeviceName asked =
        pin == options_.pins.end() ? own : own.mergedWith(DeviceName::parse(pin->second));
    if (!options_.one_process || !asked.job || !onPs(asked)) return asked;
    if (asked.task) asked.task = 0;
    if (options_.ps_tasks > 0) return asked;
    asked.job.reset();
    asked.task.reset();
    return asked;
  }

  DeviceName& deviceOf(NodeId node) {
    DTF_CHECK(node.value >= 0 && std::cmp_less(node.value, placement_.devices.size()));
    return placement_.devices[static_cast<size_t>(node.value)];
  }

  void addVariable(const Node& node) {
    placement_.variables.push_back({node.id, node.name, node.attribute<Shape>("shape"), {}});
  }

  static bool onPs(const DeviceName& constraint) {
    return !constraint.job || constraint.job == jobName(JobKind::kPs);
  }

  // Places pinned variables, and variables outside of the strategy.
  void placePinned(PlacedVariable& variable) {
    const Node& node = graph_.node(variable.node);
    const DeviceName constraint = constraintOf(node);
    if (options_.ps_tasks == 0 || !onPs(constraint)) {
      deviceOf(variable.node) = onTask(node, onWorkerOrElsewhere(options_.worker, constraint));
    } else if (constraint.task) {
      variable.parts = {{*constraint.task, 0, static_cast<uint64_t>(variable.shape.elements())}};
      setPsDevice(variable, constraint);
      dealer_.load(*constraint.task, variable.bytes());
    }
  }

  void markSparse(const Node& apply) {
    const auto variable =
        std::ranges::find(placement_.variables, apply.inputs.at(0).node, &PlacedVariable::node);
    if (variable == placement_.variables.end()) return;  // rejected by placeOther()
    const auto looked_up = static_cast<uint64_t>(graph_.spec(apply.inputs.at(2)).shape.elements());
    variable->gradient_rows_max =
        std::min(looked_up, static_cast<uint64_t>(variable->shape.dim(0)));
  }

  // Returns the elements that stay together: a row of a sparse variable stays whole.
  uint64_t blockOf(const PlacedVariable& variable) const {
    if (!variable.gradient_rows_max) return kPartAlignment;
    return static_cast<uint64_t>(variable.shape.elements() / variable.shape.dim(0));
  }

  void deal(PlacedVariable& variable) {
    if (deviceOf(variable.node).job) return;
    const uint64_t bytes = variable.bytes();
    const auto elements = static_cast<uint64_t>(variable.shape.elements());
    const bool split = options_.partition_min_bytes > 0 && bytes >= options_.partition_min_bytes &&
                       options_.ps_tasks > 1 && elements > blockOf(variable);
    if (split) {
      variable.parts = splitEvenly(elements, blockOf(variable), options_.ps_tasks);
      for (const VariablePart& part : variable.parts) {
        dealer_.load(part.ps_task, part.count * sizeof(float));
      }
    } else {
      variable.parts = {{dealer_.next(bytes), 0, elements}};
    }
    setPsDevice(variable, constraintOf(graph_.node(variable.node)));
  }

  void setPsDevice(const PlacedVariable& variable, const DeviceName& constraint) {
    DTF_CHECK_MSG(!variable.parts.empty(), variable.name);
    DeviceName device = fullDevice({JobKind::kPs, variable.parts[0].ps_task});
    device = device.mergedWith(constraint);
    deviceOf(variable.node) = onTask(graph_.node(variable.node), device);
  }

  void placeOther(const Node& node) {
    if (node.op == "Variable") return;
    if (!appliesGradient(node)) {
      const DeviceName constraint = DeviceName::parse(node.device);
      deviceOf(node.id) = onTask(node, onWorkerOrElsewhere(options_.worker, constraint));
      return;
    }
    const Node& variable = graph_.node(node.inputs[0].node);
    if (variable.op != "Variable") {
      throw Error(ErrorCode::kBadConfig, "node '" + node.name + "' (" + node.op +
                                             "): its first input '" + variable.name + "' is a " +
                                             variable.op + ", it must be a Variable");
    }
    deviceOf(node.id) = deviceOf(variable.id);
  }

  // Rejects a device on a task that is not in the cluster.
  const DeviceName& onTask(const Node& node, const DeviceName& device) const {
    const std::optional<TaskId> task = device.taskId();
    DTF_CHECK(task.has_value() && device.type && device.index);
    if (task->job == JobKind::kPs && task->index >= options_.ps_tasks) {
      throw Error(ErrorCode::kBadConfig, "node '" + node.name + "' is placed on " + task->device() +
                                             ", but the cluster has " +
                                             std::to_string(options_.ps_tasks) + " ps task(s)");
    }
    return device;
  }

  const Graph& graph_;
  const PlacerOptions& options_;
  Dealer dealer_;
  Placement placement_;
};

}  // namespace

uint64_t PlacedVariable::gradientBytesMax() const {
  if (!gradient_rows_max) return bytes();
  const auto row_elements = static_cast<uint64_t>(shape.elements() / shape.dim(0));
  return *gradient_rows_max * (1 + row_elements) * sizeof(float);
}

const PlacedVariable* Placement::variable(NodeId node) const {
  const auto found = std::lower_bound(
      variables.begin(), variables.end(), node,
      [](const PlacedVariable& variable, NodeId id) { return variable.node < id; });
  return found != variables.end() && found->node == node ? &*found : nullptr;
}

Placement place(const Graph& graph, const PlacerOptions& options) {
  return Placer(graph, options).run();
}

}  // namespace dtf::graph
