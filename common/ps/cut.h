#pragma once

// A checkpoint is one consistent cut: a point in the job that every ps passes, at which each of
// them captures its shard. Here: what a shard captures, and the waiting for the cut. At which
// position to cut is the supervisor's affair (common/train/supervisor.h); when it is reached, the
// coordinators'.

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <variant>
#include <vector>

#include "common/base/clock.h"
#include "common/base/cut_position.h"
#include "common/ps/answer.h"
#include "common/ps/parameter_store.h"
#include "common/ps/updater.h"

namespace dtf::ps {

// "step 12"; "pushes 3, 4 of worker/0, worker/1" is too long for a log, so async reads "7 pushes".
std::string cutText(const CutPosition& position);

// A value that callers branch on.
enum class CutOutcome : uint8_t {
  kCaptured = 1,
  kTooLate = 2,  // this shard has passed the cut: choose a later one
};

// Everything of a shard at a cut: what a checkpoint is made of. Immutable.
struct Capture {
  CutPosition position;
  uint64_t version = 0;
  std::shared_ptr<const Snapshot> parameters;  // shared with the store, or brought from a device
  std::vector<Buffer> slots;                   // copies: the optimizer changes its own in place
  OptimizerClock::State clock;
  Duration stall{};  // how long the copy took: updates waited for it
};

struct CutResult {
  CutOutcome outcome = CutOutcome::kTooLate;
  uint64_t version = 0;  // captured: of the parameters
};

using CutAnswer = std::variant<CutResult, Error>;
using CutCallback = std::function<void(CutAnswer)>;  // called exactly once; must not throw

// The one cut that a shard waits for, and the last one taken.
// Borrows: everything given to the constructor.
// Threads: loop-thread only.
// Blocks: never, but for the copy of a small shard, and of one on a device: a large one is copied
// where updates run, so that heartbeats are answered meanwhile, whatever its size.
class CutTaker {
 public:
  CutTaker(ParameterStore& store, Updater& updater, OutwardCalls& calls, const Clock& clock);

  // Waits for `target`; take() or answer() answers. A cut that waits already gives way.
  void arm(CutPosition target, Duration timeout, CutCallback callback);
  bool armed() const { return callback_ != nullptr; }
  const CutPosition& target() const { return target_; }

  // The target is reached, and no update runs: captures, and answers kCaptured when all is copied.
  void take();
  void answer(CutAnswer what);
  // No effect when none is armed.
  void extend(TimePoint deadline) { deadline_ = std::max(deadline_, deadline); }
  bool expired() const { return armed() && clock_.now() >= deadline_; }

  // The last capture; null when there is none. release() lets its memory go.
  const std::shared_ptr<const Capture>& latest() const { return latest_; }
  void release() { latest_ = nullptr; }

 private:
  struct Taking {
    CutPosition position;
    CutCallback callback;
  };
  void copyNext();
  void finish(std::shared_ptr<Capture> capture);
  void endTaking(CutAnswer what);

  ParameterStore& store_;
  Updater& updater_;
  OutwardCalls& calls_;
  const Clock& clock_;
  CutPosition target_;
  CutCallback callback_;
  TimePoint deadline_;
  std::deque<Taking> takings_;  // being copied, one after the other
  std::shared_ptr<const Capture> latest_;
};

}  // namespace dtf::ps
