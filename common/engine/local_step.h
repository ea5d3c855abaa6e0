#pragma once

// Runs a step whose parts are all in this process, and waits for its end.

#include <cstdint>
#include <span>

#include "common/base/clock.h"
#include "common/engine/executor.h"
#include "common/engine/rendezvous.h"
#include "common/engine/step_watch.h"

namespace dtf::engine {

// Runs startParts(), then ends the step at the rendezvous. A single part that waits for nothing
// runs in the calling thread. `watch` ends the step after `at_most`, or earlier on request. Returns
// the number of kernels run.
// //
// Blocks: until the step has ended. Errors: the root cause; kInternal for an exception that isn't
// an Error; kDeadline with the nodes that waited at a queue.
uint64_t runParts(StepId step, std::span<StepPart> parts, Rendezvous& rendezvous, StepWatch& watch,
                  Duration at_most);

}  // namespace dtf::engine
