#pragma once

// Runs a step whose parts are all in this process, and waits for its end.

#include <cstdint>
#include <span>

#include "common/base/clock.h"
#include "common/engine/executor.h"
#include "common/engine/rendezvous.h"
#include "common/engine/step_watch.h"

namespace dtf::engine {

// startParts(), and the end of the step at the rendezvous. A part alone that waits for nothing runs
// in the calling thread. `watch` ends the step after `at_most`, or before that when it is told to.
// Gives the number of kernels run.
//
// Blocks: until the step has ended. Errors: the root cause; kInternal for what isn't an Error;
// kDeadline that says what at a queue was waited for.
uint64_t runParts(StepId step, std::span<StepPart> parts, Rendezvous& rendezvous, StepWatch& watch,
                  Duration at_most);

}  // namespace dtf::engine
