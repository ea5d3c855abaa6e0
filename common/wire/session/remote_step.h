#pragma once

// One step of parts that are registered with other processes, up to its end on all of them.

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
  bool is_traced = false;  // each task tells what it did
};

struct RemoteStepLimits {
  Duration step_max;   // of the step
  Duration abort_max;  // for what computes in it to end when it has failed
};

// How each step under way is ended from outside, by its number.
using StepAborts = std::map<uint64_t, std::function<void(const Error& cause)>>;

// Runs all parts at once. The first that fails, or whose task is lost, aborts the step on all
// others, and so does the deadline. Resolved when the step has ended on each task, or the task is
// lost, so that what it was fed is the caller's again.
// Loop-thread only; what is given must stay until the promise is resolved; the step is in `aborts`
// as long. Rejects with the root cause: the first error of any part; kDeadline that names those
// that had not answered.
kj::Promise<engine::StepResult> runRemoteStep(kj::Timer& timer, RemoteStepId id,
                                              const std::vector<RemotePart>& parts,
                                              const engine::StepFeeds& feeds,
                                              RemoteStepLimits limits, StepAborts& aborts);

}  // namespace dtf::wire
