#include "common/engine/segments.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/graph/queue.h"

namespace dtf::engine {
namespace {

using graph::Node;
using graph::NodeId;
using graph::Output;

bool isSend(const Node& node) {
  return node.op == "_Send";
}

bool isReceive(const Node& node) {
  return node.op == "_Recv";
}

bool mayWait(const Node& node) {
  return graph::mayAwaitQueue(node) || graph::waitsForReplicas(node);
}

// Sets of receives and acts on queues to wait for, each identified by a number, so that thousands
// of nodes with the same set cost one.
class Sets {
 public:
  using Id = size_t;  // 0: the empty set

  Sets() { idOf({}); }
  Id with(Id set, NodeId awaited) {
    std::vector<NodeId> members = of(set);
    const auto at = std::lower_bound(members.begin(), members.end(), awaited);
    if (at == members.end() || *at != awaited) members.insert(at, awaited);
    return idOf(std::move(members));
  }

  Id united(Id a, Id b) {
    if (a == b || b == 0) return a;
    if (a == 0) return b;
    const auto [known, is_new] = unions_.try_emplace(std::minmax(a, b));
    if (is_new) {
      std::vector<NodeId> members;
      std::set_union(of(a).begin(), of(a).end(), of(b).begin(), of(b).end(),
                     std::back_inserter(members));
      known->second = idOf(std::move(members));
    }
    return known->second;
  }

  const std::vector<NodeId>& of(Id set) const {
    DTF_CHECK(set < sets_.size());
    return *sets_[set];
  }

 private:
  Id idOf(std::vector<NodeId> members) {
    const auto [known, is_new] = ids_.try_emplace(std::move(members), sets_.size());
    if (!is_new) return known->second;
    sets_.push_back(&known->first);
    numbers_ += known->first.size();
    if (numbers_ > kReceiveSetsMax)
      throw Error(ErrorCode::kBadConfig,
                  "the part on one device waits for " + std::to_string(sets_.size()) +
                      " different sets of tensors and queues, too many to tell apart; place "
                      "related nodes on one task");
    return known->second;
  }

  size_t numbers_ = 0;  // in all sets
  std::map<std::vector<NodeId>, Id> ids_;
  std::vector<const std::vector<NodeId>*> sets_;  // keys of ids_, which don't move
  std::map<std::pair<Id, Id>, Id> unions_;
};

// Distinguishes segments with the same receives and actions, in the order in which they run.
enum class Phase : uint8_t {
  kPassOn,    // sends of available tensors
  kForSends,  // nodes needed by a send
  kRest,
  kAction,  // one action on a variable or a queue each
};

// Cuts one part.
// Borrows: the part and the fetches, for one call of cutIntoSegments().
class Cutter {
 public:
  Cutter(const graph::Graph& part, const std::vector<Output>& fetches)
      : part_(part), fetches_(fetches) {}

  std::vector<Segment> run() {
    findSets();
    findLevels();
    findNeededBySends();
    for (const Node& node : part_.nodes()) place(node);
    numberInOrder();
    for (const Node& node : part_.nodes()) connect(node);
    for (const Output& fetch : fetches_) take(fetch);
    for (auto& [key, made] : made_) {
      made.segment.after.assign(made.after.begin(), made.after.end());
      made.segment.results.assign(made.results.begin(), made.results.end());
      made.segment.receives = ownReceives(key.set, made.segment.after);
      segments_[made.index] = std::move(made.segment);
    }
    return std::move(segments_);
  }

 private:
  struct Key {
    Sets::Id set = 0;
    size_t level =
        0;  // actions on the longest way to its nodes; those that may wait are in `set`, too
    Phase phase = Phase::kRest;
    NodeId action;  // the node of kAction
    auto operator<=>(const Key&) const = default;
  };
  struct Made {
    Segment segment;
    size_t index = 0;
    std::set<size_t> after;
    std::set<Output> results;
  };

  static size_t indexOf(NodeId node) { return static_cast<size_t>(node.value); }
  // Returns whether a program runs the node.
  static bool computes(const Node& node) {
    return !isSource(node) && !isReceive(node) && !isSend(node);
  }

  void findSets() {
    for (const Node& node : part_.nodes()) {
      Sets::Id set = 0;
      for (const Output& input : node.inputs)
        set = sets_.united(set, set_after_[indexOf(input.node)]);
      for (const NodeId before : node.control_inputs) {
        set = sets_.united(set, set_after_[indexOf(before)]);
      }
      if (isReceive(node)) set = sets_.with(set, node.id);
      set_of_.push_back(set);
      // Its own segment doesn't come after it.
      set_after_.push_back(mayWait(node) ? sets_.with(set, node.id) : set);
    }
  }

  void findLevels() {
    for (const Node& node : part_.nodes()) {
      size_t level = 0;
      const auto follow = [this, &level](NodeId before) {
        const size_t passed = isAction(part_.node(before)) ? 1 : 0;
        level = std::max(level, level_of_[indexOf(before)] + passed);
      };
      for (const Output& input : node.inputs) follow(input.node);
      for (const NodeId before : node.control_inputs) follow(before);
      level_of_.push_back(level);
    }
  }

  void findNeededBySends() {
    needed_.assign(part_.nodes().size(), false);
    for (auto node = part_.nodes().rbegin(); node != part_.nodes().rend(); ++node) {
      if (isSend(*node)) needed_[indexOf(node->id)] = true;
      if (!needed_[indexOf(node->id)]) continue;
      for (const Output& input : node->inputs) needed_[indexOf(input.node)] = true;
      for (const NodeId before : node->control_inputs) needed_[indexOf(before)] = true;
    }
  }

  Key keyOf(const Node& node) const {
    Key key{set_of_[indexOf(node.id)], level_of_[indexOf(node.id)], Phase::kRest, {}};
    if (isAction(node)) {
      key.phase = Phase::kAction;
      key.action = node.id;
    } else if (isSend(node)) {
      const Node& source = part_.node(node.inputs[0].node);
      const bool waits = computes(source) || !node.control_inputs.empty();
      key.phase = waits ? Phase::kForSends : Phase::kPassOn;
    } else if (needed_[indexOf(node.id)]) {
      key.phase = Phase::kForSends;
    }
    return key;
  }

  void place(const Node& node) {
    if (!computes(node) && !isSend(node)) return;
    Made& made = made_[keyOf(node)];
    if (isAction(node)) {
      made.segment.action = node.id;
    } else {
      (isSend(node) ? made.segment.sends : made.segment.nodes).push_back(node.id);
    }
  }

  // Orders segments so that each comes after all that its nodes can read: first by the size of the
  // set they wait for, then by the number of actions before them, then by set, which follows from
  // the part's order.
  void numberInOrder() {
    std::vector<std::pair<Key, Made*>> order;
    for (auto& [key, made] : made_) order.emplace_back(key, &made);
    std::stable_sort(order.begin(), order.end(), [this](const auto& a, const auto& b) {
      const auto rank = [this](const Key& key) {
        return std::tuple(sets_.of(key.set).size(), key.level, key.phase);
      };
      return rank(a.first) < rank(b.first);
    });
    for (const auto& [key, made] : order) {
      made->index = set_of_segment_.size();
      set_of_segment_.push_back(key.set);
    }
    segments_.resize(order.size());
  }

  // Returns the receives that no earlier segment has waited for.
  std::vector<NodeId> ownReceives(Sets::Id set, const std::vector<size_t>& after) const {
    std::vector<NodeId> own = sets_.of(set);
    for (const size_t before : after) {
      const std::vector<NodeId>& awaited = sets_.of(set_of_segment_[before]);
      std::vector<NodeId> left;
      std::set_difference(own.begin(), own.end(), awaited.begin(), awaited.end(),
                          std::back_inserter(left));
      own = std::move(left);
    }
    std::erase_if(own, [this](NodeId awaited) { return !isReceive(part_.node(awaited)); });
    return own;
  }

  void connect(const Node& node) {
    if (!computes(node) && !isSend(node)) return;
    Made& here = made_.at(keyOf(node));
    const auto follow = [this, &here](NodeId before) {
      const Node& source = part_.node(before);
      if (!computes(source)) return;
      const size_t index = made_.at(keyOf(source)).index;
      DTF_CHECK(index <= here.index);
      if (index < here.index) here.after.insert(index);
    };
    for (const Output& input : node.inputs) {
      follow(input.node);
      const bool crosses = isSend(node) || !(keyOf(part_.node(input.node)) == keyOf(node));
      if (crosses) take(input);
    }
    for (const NodeId before : node.control_inputs) follow(before);
  }

  void take(const Output& output) {
    const Node& node = part_.node(output.node);
    if (computes(node)) made_.at(keyOf(node)).results.insert(output);
  }

  const graph::Graph& part_;
  const std::vector<Output>& fetches_;
  Sets sets_;
  std::vector<Sets::Id> set_of_;     // by NodeId: the set it waits for
  std::vector<Sets::Id> set_after_;  // by NodeId: the set its readers wait for
  std::vector<size_t> level_of_;     // by NodeId
  std::vector<bool> needed_;         // by NodeId: needed by a send
  std::map<Key, Made> made_;
  std::vector<Sets::Id> set_of_segment_;
  std::vector<Segment> segments_;
};

}  // namespace

bool isAction(const Node& node) {
  return graph::actsOnVariable(node) || graph::actsOnQueue(node) || node.op == "ClipByGlobalNorm";
}

bool isSource(const Node& node) {
  if (node.op == "Placeholder" || node.op == "Variable" || graph::isQueue(node)) return true;
  return node.op == "Const" && node.control_inputs.empty();
}

std::vector<Segment> cutIntoSegments(const graph::Graph& part, const std::vector<Output>& fetches) {
  return Cutter(part, fetches).run();
}

}  // namespace dtf::engine
