#pragma once

// A pause of synchronous replicas, in which all variables stay of one step.

#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "common/base/thread.h"
#include "common/engine/session.h"
#include "common/graph/graph.h"

namespace dtf::train {

// Between construction and destruction no step is decided at the global steps of the session's
// graph (SyncReplicasPause); a step that was decided before is completed by its clients. Clients
// wait meanwhile. If this process dies, the end of its session ends the pause.
// Owns: a thread, in which the pause is a step of the session.
// Borrows: the session.
// Threads: one.
// Blocks: the constructor doesn't wait for the pause to begin; the destructor until it has ended,
// at most as long as a step may take.
// Errors: the pause ends when the session is lost or the global step is set: the caller's own steps
// fail then, or find other values. The log has the reason.
class ReplicaPause {
 public:
  // Returns whether the graph has the nodes; without them the replicas go on.
  static bool isIn(const graph::Graph& graph);
  explicit ReplicaPause(engine::Session& session);
  ~ReplicaPause();
  ReplicaPause(const ReplicaPause&) = delete;
  ReplicaPause& operator=(const ReplicaPause&) = delete;

 private:
  void hold();
  std::string tryHold();
  bool endsWithin(Duration patience);

  engine::Session& session_;
  std::vector<std::string> pauses_, resumes_;  // nodes of the graph
  Mutex mutex_;
  CondVar changed_;
  bool ending_ DTF_GUARDED_BY(mutex_) = false;
  bool ended_ DTF_GUARDED_BY(mutex_) = false;  // the thread runs no step any more
  Thread thread_;
};

}  // namespace dtf::train
