#include "common/graph/device_placer.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/base/text.h"
#include "common/graph/graph_copy.h"
#include "common/graph/prune.h"
#include "common/graph/queue.h"

namespace dtf::graph {
namespace {

template <class T>
bool allows(const std::optional<T>& wanted, const std::optional<T>& there) {
  return !wanted || wanted == there;
}

bool onTask(const DeviceName& constraint, const DeviceName& device) {
  return allows(constraint.job, device.job) && allows(constraint.replica, device.replica) &&
         allows(constraint.task, device.task);
}

bool meets(const DeviceName& constraint, const DeviceName& device) {
  return onTask(constraint, device) && allows(constraint.type, device.type) &&
         allows(constraint.index, device.index);
}

template <class T>
bool contradict(const std::optional<T>& a, const std::optional<T>& b) {
  return a && b && a != b;
}

std::string text(const DeviceName& device) {
  const std::string fields = device.str();
  return fields.empty() ? "any device" : fields;
}

// Places one graph.
// Borrows: the graph and the options, for one call of placeOnDevices().
class DevicePlacer {
 public:
  DevicePlacer(const Graph& graph, const DevicePlacerOptions& options)
      : graph_(graph), options_(options), groups_(graph.nodes().size()) {
    DTF_CHECK(!options.devices.empty());
    std::iota(groups_.begin(), groups_.end(), size_t{0});
  }

  Placement run() {
    parseConstraints();
    colocate();
    Placement placement;
    placement.devices.resize(graph_.nodes().size());
    std::map<size_t, const DeviceName*> chosen;  // by group
    for (const Node& node : graph_.nodes()) {
      const size_t group = groupOf(node.id);
      const auto [known, is_new] = chosen.try_emplace(group);
      if (is_new) known->second = &choose(group);
      placement.devices[indexOf(node.id)] = *known->second;
      if (node.op == "Variable") {
        placement.variables.push_back({node.id, node.name, node.outputs[0].shape, {}});
      }
    }
    return placement;
  }

 private:
  static size_t indexOf(NodeId node) { return static_cast<size_t>(node.value); }

  // ---- texts for messages

  std::string nameOf(const Node& node) const {
    const auto line = options_.lines.find(node.name);
    return (line == options_.lines.end() ? "" : line->second + ": ") + "node '" + node.name +
           "' (" + node.op + ")";
  }

  std::string devicesText(const std::vector<DeviceName>& devices) const {
    std::vector<std::string> names;
    for (const DeviceName& device : devices) names.push_back(device.str());
    return join(names, ", ");
  }

  [[noreturn]] static void refuse(const std::string& message) {
    throw Error(ErrorCode::kBadConfig, message);
  }

  // ---- constraints of nodes

  static bool isWithState(const Node& node) {
    return appliesGradient(node) || actsOnVariable(node) || actsOnQueue(node);
  }

  void parseConstraints() {
    for (const Node& node : graph_.nodes()) {
      const auto known = parsed_.find(node.device);
      if (known == parsed_.end()) {
        try {
          parsed_.emplace(node.device, DeviceName::parse(node.device));
        } catch (const Error& error) {
          refuse(nameOf(node) + ": " + error.message());
        }
      }
      // A node that acts on a variable or a queue runs at its place; the node's own constraint is
      // ignored.
      constraints_.push_back(isWithState(node) ? DeviceName() : parsed_.at(node.device));
      members_.push_back({node.id});
    }
  }

  void colocate() {
    for (const auto& [name, other] : options_.colocations) {
      joinGroups(graph_.node(findNode(graph_, name)), graph_.node(findNode(graph_, other)));
    }
    for (const Node& node : graph_.nodes()) {
      if (!isWithState(node)) continue;
      joinWithState(node, node.inputs[0]);
      for (const Output& slot : variablesOf(node)) joinWithState(node, slot);
    }
  }

  void joinWithState(const Node& node, const Output& input) {
    const Node& state = graph_.node(input.node);
    if (state.op != "Variable" && !actsOnQueue(node)) {
      const bool is_first = input == node.inputs[0];
      refuse(nameOf(node) + ": its " + (is_first ? "first" : "slot's") + " input '" + state.name +
             "' is a " + state.op + ", it must be a Variable");
    }
    joinGroups(node, state);
  }

  size_t groupOf(NodeId node) {
    size_t group = indexOf(node);
    while (groups_[group] != group) group = groups_[group] = groups_[groups_[group]];
    return group;
  }

  void joinGroups(const Node& node, const Node& other) {
    const size_t from = groupOf(node.id), into = groupOf(other.id);
    if (from == into) return;
    DeviceName& common = constraints_[into];
    const DeviceName& asked = constraints_[from];
    const bool tasks = contradict(common.job, asked.job) ||
                       contradict(common.replica, asked.replica) ||
                       contradict(common.task, asked.task);
    const bool hardware =
        contradict(common.type, asked.type) || contradict(common.index, asked.index);
    if (tasks || (hardware && !options_.soft)) {
      refuse(nameOf(node) + " must be where '" + other.name + "' is, which asks for " +
             text(common) + ", but asks for " + text(asked) + " itself");
    }
    common = asked.mergedWith(common);
    groups_[from] = into;
    std::vector<NodeId>& joined = members_[into];
    joined.insert(joined.end(), members_[from].begin(), members_[from].end());
    members_[from].clear();
  }

  // ---- the choice

  // Returns a member that no device of this constraint can compute; nullptr if the device can
  // compute all.
  const Node* incapable(size_t group, const DeviceName& device) const {
    if (!options_.can_run) return nullptr;
    for (const NodeId member : members_[group]) {
      if (!options_.can_run(graph_.node(member), device)) return &graph_.node(member);
    }
    return nullptr;
  }

  const DeviceName* best(size_t group, const DeviceName& constraint) const {
    const auto rank = [this](const DeviceName& device) {
      const DeviceName& preferred = options_.preferred;
      return std::tuple(!onTask(preferred, device), !allows(preferred.type, device.type),
                        !allows(preferred.index, device.index));
    };
    const DeviceName* found = nullptr;
    for (const DeviceName& device : options_.devices) {
      if (!meets(constraint, device) || incapable(group, device) != nullptr) continue;
      if (found == nullptr || rank(device) < rank(*found)) found = &device;
    }
    return found;
  }

  const DeviceName& choose(size_t group) const {
    const DeviceName& constraint = constraints_[group];
    if (const DeviceName* device = best(group, constraint)) return *device;
    if (options_.soft) {
      DeviceName open = constraint;
      open.type.reset();
      open.index.reset();
      if (const DeviceName* device = best(group, open)) return *device;
    }
    refuseGroup(group);
  }

  [[noreturn]] void refuseGroup(size_t group) const {
    DTF_CHECK(!members_[group].empty());
    const DeviceName& constraint = constraints_[group];
    for (const DeviceName& device : options_.devices) {
      if (!meets(constraint, device)) continue;
      const Node* const node = incapable(group, device);
      DTF_CHECK(node != nullptr);
      std::vector<DeviceName> others;
      for (const DeviceName& other : options_.devices) {
        if (options_.can_run(*node, other)) others.push_back(other);
      }
      refuse(nameOf(*node) + ": " + device.str() + " has no kernel for it; " +
             (others.empty() ? "no device has one" : "these have: " + devicesText(others)));
    }
    refuse(nameOf(asking(group)) + ": there is no device " + text(constraint) + "; there are " +
           devicesText(options_.devices));
  }

  // Returns the first node of the group with a constraint.
  const Node& asking(size_t group) const {
    for (const NodeId member : members_[group]) {
      if (!graph_.node(member).device.empty()) return graph_.node(member);
    }
    return graph_.node(members_[group].front());
  }

  const Graph& graph_;
  const DevicePlacerOptions& options_;
  std::map<std::string, DeviceName> parsed_;
  // by NodeId; a group's constraint is stored at its representative
  std::vector<DeviceName> constraints_;
  std::vector<size_t> groups_;                // by NodeId: another node of the group, or itself
  std::vector<std::vector<NodeId>> members_;  // indexed like constraints_
};

}  // namespace

Placement placeOnDevices(const Graph& graph, const DevicePlacerOptions& options) {
  return DevicePlacer(graph, options).run();
}

Graph withDevices(const Graph& graph, const Placement& placement) {
  DTF_CHECK(placement.devices.size() == graph.nodes().size());
  GraphCopy copy(graph);
  for (const Node& node : graph.nodes()) {
    NodeDef def = copy.mapped(node);
    def.device = placement.device(node.id).str();
    copy.add(node.id, std::move(def));
  }
  return copy.take();
}

}  // namespace dtf::graph
