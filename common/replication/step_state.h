#pragma once

// Requests and replies of a training step: of a pull, and of an exchange of a gradient for
// parameters.

#include <cstdint>
#include <limits>
#include <optional>

#include "common/base/clock.h"
#include "common/replication/phase_times.h"

namespace dtf::replication {

// The fate of a push. A value that callers branch on, never an error.
enum class Outcome : uint8_t {
  kApplied = 1,  // the gradient is in the parameters that came back
  // Sync with several batches a step: the gradient is kept. More of this worker's batches are due
  // for this step.
  kQueued = 2,
  // Too late: the step was decided without the gradient, which has no effect.
  kStale = 3,
  // The ps have gone back to an earlier cut: the gradient has no effect, and the reply has
  // parameters of that cut or a later one.
  kWentBack = 4,
};

// Bounded: a worker's progress before its first step, and after the end of the job, when no worker
// waits for it any more.
inline constexpr uint64_t kProgressFirst = 1;
inline constexpr uint64_t kProgressEnd = std::numeric_limits<uint64_t>::max();

// The options of a pull. The default: the newest parameters.
struct Wanted {
  std::optional<uint64_t> step;  // sync: the parameters of that very step
  uint64_t progress = 0;         // bounded: carried from ps/0 to the other ps; 0: none yet
  bool operator==(const Wanted&) const = default;
};

// The reply to a pull or an exchange, the same on every ps.
struct StepState {
  Outcome outcome = Outcome::kApplied;
  // async: updates applied so far. sync: steps decided so far. Counted by ps/0 in async mode.
  uint64_t global_step = 0;
  // The step that the worker computes next. sync: the step to contribute to. async: this worker's
  // own count.
  uint64_t next_step = 0;
  // sync with several batches per worker: which of the worker's batches of next_step
  uint32_t next_batch = 0;
  bool done = false;  // nothing more to compute: finish
  // async, on ps/0: updates between the parameters that the gradient was computed from and the
  // gradient's own update. They are others', and with overlap this worker's previous one.
  uint64_t staleness = 0;
  // The loss of the batches behind these parameters. sync: the mean over the step's contributions;
  // async: the caller's own.
  float loss = 0;
  // The epoch of the parameters (epoch.h). The gradient computed from them carries it back.
  uint64_t epoch = 0;
  // bounded: this worker's progress in steps, counted from kProgressFirst by ps/0. The worker
  // carries it to the other ps. 0: none yet. See AsyncCoordinator.
  uint64_t progress = 0;
  // From a ps: the time for which the call waited there, once its gradient had come; 0: not
  // measured. From an exchange client: the part of an exchange in which this worker waited.
  Duration waited{0};
  // Sync, from ps/0: the worker that the others wait for; nullopt: none stands out.
  std::optional<Straggler> straggler{};
  bool operator==(const StepState&) const = default;
};

}  // namespace dtf::replication
