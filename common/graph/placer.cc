#include "common/graph/placer.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
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

// Some of the ps: [first, first + count).
struct PsRange {
  uint32_t first = 0;
  uint32_t count = 0;
};

// The running state of a strategy.
class Dealer {
 public:
  explicit Dealer(const PlacerOptions& options)
      : strategy_(options.strategy), weights_(weightsOf(options)), loads_(options.ps_tasks) {}

  std::span<const double> weights(PsRange range) const {
    return std::span(weights_).subspan(range.first, range.count);
  }

  void load(uint32_t ps_task, uint64_t bytes) {
    DTF_CHECK(ps_task < loads_.size());
    loads_[ps_task] += bytes;
  }

  uint64_t load(uint32_t ps_task) const { return loads_.at(ps_task); }

  uint32_t next(uint64_t bytes, PsRange range) {
    DTF_CHECK(range.count > 0 && range.first + range.count <= loads_.size());
    if (strategy_ == PlacementStrategy::kRoundRobin)
      return range.first + static_cast<uint32_t>(counter_++ % range.count);
    uint32_t lightest = range.first;  // the first of equals
    for (uint32_t ps = range.first; ps < range.first + range.count; ++ps)
      if (fullness(ps) < fullness(lightest)) lightest = ps;
    loads_[lightest] += bytes;
    return lightest;
  }

 private:
  static std::vector<double> weightsOf(const PlacerOptions& options) {
    const bool is_weighted = options.strategy == PlacementStrategy::kEven ||
                             options.strategy == PlacementStrategy::kHybrid;
    if (!is_weighted || options.shares.empty()) return std::vector<double>(options.ps_tasks, 1.0);
    DTF_CHECK(options.shares.size() == options.ps_tasks);
    for (const double share : options.shares) DTF_CHECK(share > 0);
    return options.shares;
  }

  double fullness(size_t ps) const { return static_cast<double>(loads_[ps]) / weights_[ps]; }

  const PlacementStrategy strategy_;
  const std::vector<double> weights_;  // by ps task
  std::vector<uint64_t> loads_;        // bytes per ps task
  uint64_t counter_ = 0;
};

// Returns runs of blocks of `block` elements, one for each ps of the range by its weight; the last
// block may be shorter. Equal weights: the first blocks % range.count ps get one more.
std::vector<VariablePart> splitByWeight(uint64_t elements, uint64_t block, PsRange range,
                                        std::span<const double> weights) {
  DTF_CHECK(range.count > 0 && weights.size() == range.count && block > 0);
  const uint64_t all_blocks = (elements + block - 1) / block;
  auto blocks = static_cast<double>(all_blocks);
  double weight = std::accumulate(weights.begin(), weights.end(), 0.0);
  std::vector<VariablePart> parts;
  uint64_t begin = 0;
  for (uint32_t ps = 0; ps < range.count; ++ps) {
    const bool is_last = ps + 1 == range.count;
    const double share =
        is_last ? blocks : std::min(blocks, std::ceil(blocks * weights[ps] / weight));
    const uint64_t count = std::min(static_cast<uint64_t>(share) * block, elements - begin);
    if (count > 0) parts.push_back({range.first + ps, begin, count});
    begin += count;
    blocks -= share;
    weight -= weights[ps];
  }
  DTF_CHECK(begin == elements);  // every element has a ps
  return parts;
}

// Fills the ps one after the other until all have the same number of bytes for their weight.
class EvenCut {
 public:
  // `bytes`: of all variables that will be cut.
  EvenCut(const Dealer& dealer, PsRange range, uint64_t bytes) : first_(range.first) {
    const std::span<const double> weights = dealer.weights(range);
    std::vector<Vessel> vessels;
    for (uint32_t ps = 0; ps < range.count; ++ps)
      vessels.push_back({static_cast<double>(dealer.load(first_ + ps)), weights[ps]});
    const double level = levelOf(vessels, static_cast<double>(bytes));
    for (const Vessel& vessel : vessels) {
      const double room = std::floor(level * vessel.width) - vessel.bytes;
      room_.push_back(std::max<int64_t>(static_cast<int64_t>(room), 0));
    }
  }

  // Returns the parts of the next variable, of blocks of `block` elements.
  std::vector<VariablePart> cut(uint64_t elements, uint64_t block) {
    DTF_CHECK(elements > 0 && block > 0);
    const auto block_bytes = static_cast<int64_t>(block * sizeof(float));
    std::vector<VariablePart> parts;
    for (uint64_t begin = 0; begin < elements;) {
      const bool is_last = ps_ + 1 == room_.size();
      // Rounded: a part may exceed the room by half a block, which the next ps has more.
      const int64_t blocks = std::max<int64_t>(room_[ps_] + block_bytes / 2, 0) / block_bytes;
      const uint64_t fits = is_last ? elements : static_cast<uint64_t>(blocks) * block;
      const uint64_t count = std::min(fits, elements - begin);
      if (count > 0) parts.push_back({first_ + ps_, begin, count});
      begin += count;
      room_[ps_] -= static_cast<int64_t>(count * sizeof(float));
      if (begin == elements) break;
      room_[ps_ + 1] += std::exchange(room_[ps_], 0);
      ++ps_;
    }
    return parts;
  }

 private:
  // A ps as a vessel that is filled with bytes. Value type.
  struct Vessel {
    double bytes = 0;  // of pinned and large variables
    double width = 1;  // its weight
    double height() const { return bytes / width; }
  };

  // Returns the height to which `bytes`, poured over all vessels, rise.
  static double levelOf(std::vector<Vessel> vessels, double bytes) {
    std::ranges::sort(vessels, {}, &Vessel::height);
    double below = bytes, width = 0;
    for (size_t covered = 1; covered <= vessels.size(); ++covered) {
      below += vessels[covered - 1].bytes;
      width += vessels[covered - 1].width;
      const double level = below / width;
      if (covered == vessels.size() || level <= vessels[covered].height()) return level;
    }
    return 0;  // there is no vessel
  }

  const uint32_t first_;       // the first ps
  std::vector<int64_t> room_;  // bytes, by ps from the first one on
  uint32_t ps_ = 0;            // that is being filled, likewise
};

// Places one graph.
// Borrows: the graph and the options, for one call of place().
class Placer {
 public:
  Placer(const Graph& graph, const PlacerOptions& options)
      : graph_(graph), options_(options), dealer_(options) {}

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
    deal();
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
    if (!variable.gradient_rows_max) return options_.part_alignment;
    return static_cast<uint64_t>(variable.shape.elements() / variable.shape.dim(0));
  }

  // Deals the variables that no pin has placed.
  void deal() {
    std::vector<PlacedVariable*> sparse, others;
    for (PlacedVariable& variable : placement_.variables)
      if (!deviceOf(variable.node).job)
        (isHybrid() && variable.gradient_rows_max ? sparse : others).push_back(&variable);
    const uint32_t first = isHybrid() ? options_.sparse_shards : 0;
    deal(sparse, {0, first});
    deal(others, {first, options_.ps_tasks - first});
  }

  bool isHybrid() const {
    return options_.strategy == PlacementStrategy::kHybrid && options_.sparse_shards > 0 &&
           options_.sparse_shards < options_.ps_tasks;
  }

  void deal(const std::vector<PlacedVariable*>& variables, PsRange range) {
    const bool is_even = options_.strategy == PlacementStrategy::kEven ||
                         options_.strategy == PlacementStrategy::kHybrid;
    const bool cuts = is_even && !options_.whole_variables && range.count > 1;
    std::vector<PlacedVariable*> small;
    uint64_t small_bytes = 0;
    for (PlacedVariable* variable : variables) {
      if (isLarge(*variable, range)) {
        variable->parts =
            splitByWeight(elementsOf(*variable), blockOf(*variable), range, dealer_.weights(range));
        for (const VariablePart& part : variable->parts)
          dealer_.load(part.ps_task, part.count * sizeof(float));
      } else if (cuts) {
        small.push_back(variable);
        small_bytes += variable->bytes();
      } else {
        variable->parts = {{dealer_.next(variable->bytes(), range), 0, elementsOf(*variable)}};
      }
    }
    if (cuts) {
      EvenCut even(dealer_, range, small_bytes);
      for (PlacedVariable* variable : small)
        variable->parts = even.cut(elementsOf(*variable), blockOf(*variable));
    }
    for (const PlacedVariable* variable : variables)
      setPsDevice(*variable, constraintOf(graph_.node(variable->node)));
  }

  static uint64_t elementsOf(const PlacedVariable& variable) {
    return static_cast<uint64_t>(variable.shape.elements());
  }

  // Whether the variable is split over all ps of the range.
  bool isLarge(const PlacedVariable& variable, PsRange range) const {
    return options_.partition_min_bytes > 0 && !options_.whole_variables &&
           variable.bytes() >= options_.partition_min_bytes && range.count > 1 &&
           elementsOf(variable) > blockOf(variable);
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
