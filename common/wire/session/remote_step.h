#pragma once

// One step of parts that are registered with other processes, up to its end in all of them.

#include <kj/async.h>
#include <kj/timer.h>

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "common/base/clock.h"
#include "common/base/error.h"
#include "common/engine/tasks.h"
#include "common/graph/graph.h"

namespace dtf::wire {

class TaskLink;

// A part of a plan, where it is registered. Borrows the link.
struct RemotePart {
  TaskLink* link = nullptr;
  std::vector<graph::TensorSpec> fetches;
};

struct RemoteStepId {
  uint64_t plan = 0, step = 0;
  bool is_traced = false;  // each task returns a trace
};

struct RemoteStepLimits {
  Duration step_max;   // of the step
  Duration abort_max;  // for running kernels to end after a failure
};

// The functions that abort the steps under way, by number.
using StepAborts = std::map<uint64_t, std::function<void(const Error& cause)>>;

// Runs all parts at once. The first part that fails, the loss of a task, and the deadline abort the
// step on all other tasks. Resolves when the step has ended on each task, or the task is lost; only
// then may the caller change the feeds.
// Borrows: all arguments, until the promise is resolved. `aborts` contains the step for as long.
// Threads: loop-thread only.
// Errors: as a promise, the root cause: the first error of any part, or kDeadline with the names of
// the tasks that had not replied.
kj::Promise<engine::StepResult> runRemoteStep(kj::Timer& timer, RemoteStepId id,
                                              const std::vector<RemotePart>& parts,
                                              const engine::StepFeeds& feeds,
                                              RemoteStepLimits limits, StepAborts& aborts);

}  // namespace dtf::wire
