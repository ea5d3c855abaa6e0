#pragma once

// Binds and listens for every task before any is started. A task inherits a copy of its socket, and
// the launcher keeps the other, so the port is the task's from the first moment to the last,
// through every restart: two launches never choose the same one, and a port in use is reported at
// once, with its line in the file.

#include <map>
#include <string>

#include "common/base/file.h"
#include "common/base/ids.h"
#include "common/cluster/spec.h"
#include "launcher/launch_plan.h"

namespace dtf::launcher {

// Whether a task at `host` would run here: the name resolves to an address that this host can bind.
// Blocks: on name resolution.
bool isThisHost(const std::string& host);

// What is known of some tasks.
using TaskSpecs = std::map<TaskId, cluster::TaskSpec>;
TaskSpecs specsOf(const cluster::ClusterSpec& cluster);  // of all

// Owns: the sockets, until drop().
// Threads: thread-compatible.
class ListenSockets {
 public:
  // Sockets for all of `tasks`, or, with `auto_only`, for those whose port is `auto`: that is how
  // --dry-run finds ports without disturbing a job that holds the fixed ones. `reachable`: also
  // where other hosts can connect.
  // Blocks: on name resolution.
  // Errors: kUnavailable for a port in use, naming who holds it; kBadConfig for a host that isn't
  // this one, or one that the network can reach, unless `reachable`.
  static ListenSockets open(const TaskSpecs& tasks, bool reachable, bool auto_only = false);

  // What the tasks with an `auto` port were given.
  const ChosenAddresses& chosen() const { return chosen_; }

  // A copy of the task's socket (close-on-exec).
  // Errors: kUnavailable when no descriptor is left.
  Fd copyFor(TaskId id) const;

  // The task is not started again: nobody is to wait for an answer on its port.
  void drop(TaskId id);

 private:
  std::map<TaskId, Fd> sockets_;
  ChosenAddresses chosen_;
};

}  // namespace dtf::launcher
