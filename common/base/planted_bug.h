#pragma once

// Mistakes that the simulator (tests/sim) must find. Builds with the tests have them, as they have
// failpoints, and only the simulator turns one on; a plain build has none: there plantedBug() is
// false at compile time and leaves no trace.

#include <cstdint>

namespace dtf {

enum class Bug : uint8_t {
  kNone,
  kRepeatAppliedTwice,    // async: a push said twice is taken twice
  kStalePushApplied,      // sync: a push of a step that is over counts for the next one
  kFenceOpen,             // a process that was replaced or lost is still listened to
  kSetsDiffer,            // backup workers: a follower applies the first it has, not what ps/0 says
  kOldVersionAnswered,    // sync: workers are answered with the parameters of before the step
  kBarrierForgetsToWake,  // the second of those that wait at a barrier is never told
  kInitialiseOverwrites,  // a restarted chief's initial values replace what was trained
  kHeldGradientDropped,   // sync: what a lost worker had pushed is forgotten on that ps
  kGrantGivenTwice,       // async: a lost worker's grant is given back and kept
  kHalfPushApplied,       // of a gradient only the first half is taken
  kCutNotHeld,            // async: pushes go on while a checkpoint's place is agreed upon
  kCutAtAnyStep,         // sync: a shard captures the next step it gets to, whichever was asked for
  kSlotsNotRestored,     // a checkpoint's slots stay in its files
  kClockNotRestored,     // the optimizer counts its updates anew after a restore
  kPositionNotRestored,  // async: workers begin again with their first batch
  kRestoreOverwrites,    // a restarted chief's checkpoint replaces what was trained since
  kStopForgetsGrants,    // async: a stop does not wait for the steps that were granted
  // Found by the simulator and mended since:
  kLastAnswersCutShort,  // a ps that ends does not wait for its last answers to leave
  kEndsWithoutChief,     // a job whose chief is lost at its end counts as finished
  kStaleToldAsApplied,   // a push too late is reported as applied when a ps had to be asked again
  kLast = kStaleToldAsApplied,
};

#ifdef DTF_FAILPOINTS_COMPILED_IN
inline Bug planted_bug = Bug::kNone;  // set by one thread, before anything runs
inline bool plantedBug(Bug bug) {
  return planted_bug == bug;
}
#else
constexpr bool plantedBug(Bug) {
  return false;
}
#endif

}  // namespace dtf
