#pragma once

// Reads variables of synchronous replicas so that all values are of one step.

#include <functional>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/engine/session.h"

namespace dtf::train {

struct OneStepReadOptions {
  Duration patience{};  // with a step that is half taken
  // A pause has a thread of its own. Without one, clients that never rest may prevent the read.
  bool pauses_replicas = true;
  // A simulation has another clock, and waits without blocking the thread. Null: the system's.
  const Clock* clock = nullptr;
  std::function<void(TimePoint until)> wait_until{};
};

// Returns the values of `fetches`, which contain all `versions`: the variables that count steps.
// Each device reads its variables in an instant of its own, and other clients may take a step
// meanwhile: after a first try the graph's replicas are paused, if it has nodes for it, until the
// versions agree.
// Threads: any, as engine::Session::run(). Blocks: on the tasks, and for options.patience.
// Errors: kUnavailable for a step that stays half taken; as engine::Session::run().
std::vector<Tensor> readOfOneStep(engine::Session& session, const std::vector<std::string>& fetches,
                                  const std::vector<std::string>& versions,
                                  const OneStepReadOptions& options);

}  // namespace dtf::train
