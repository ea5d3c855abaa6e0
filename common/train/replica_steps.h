#pragma once

// The steps of synchronous replicas as a supervisor sees them: whether all variables have taken the
// last one, and the end of all.

#include <cstdint>
#include <string>
#include <vector>

#include "common/engine/session.h"
#include "common/graph/graph.h"

namespace dtf::train {

// Finds steps that some variables have taken and others not, which no client completes any more.
// A graph without synchronous replicas has none.
// Owns: the names of the graph's nodes. Borrows: nothing.
// Threads: thread-compatible.
// Blocks: on the session's tasks.
// Errors: as engine::Session::run().
class ReplicaSteps {
 public:
  ReplicaSteps() = default;
  // `global_step`: its name. Steps that other counters count are not looked at.
  ReplicaSteps(const graph::Graph& graph, const std::string& global_step);

  // Returns whether all variables have taken the same step. While clients train, they differ in
  // passing, so only a step that stays the same is counted as a look in vain.
  bool isWhole(engine::Session& session);
  // Returns whether the step has stayed half taken at so many looks that it will stay so.
  bool isStuck() const { return looks_ >= kLooksMax; }
  int64_t step() const { return step_; }  // of the last look
  void forgetLooks() { looks_ = 0; }

  // Ends all waits for other replicas, and refuses later gradients.
  void finish(engine::Session& session) const;

 private:
  static constexpr int kLooksMax = 3;

  std::vector<std::string> fetches_, finishes_;  // the global step comes first
  int64_t step_ = -1;
  int looks_ = 0;  // that found `step_` half taken, one after another
};

}  // namespace dtf::train
