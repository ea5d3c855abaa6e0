#pragma once

// A checkpoint is one consistent cut: a point in the job that every ps passes, at which each
// captures its shard. This file has the capture of a shard and the wait for the cut. The supervisor
// (common/train/supervisor.h) chooses the position; the coordinators detect that it is reached.

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
#include "common/optimizer/parameter_store.h"
#include "common/replication/answer.h"
#include "common/replication/updater.h"

namespace dtf::replication {

// Returns "step 12"; async: "7 pushes", since the pushes of every worker are too long for a log.
std::string cutText(const CutPosition& position);

// A value that callers branch on.
enum class CutOutcome : uint8_t {
  kCaptured = 1,
  kTooLate = 2,  // this shard has passed the cut: choose a later one
};

// A shard's state at a cut, for a checkpoint. Immutable.
struct Capture {
  CutPosition position;
  uint64_t version = 0;
  std::shared_ptr<const arena::ParameterVersion>
      parameters;             // shared with the store, or brought from a device
  std::vector<Buffer> slots;  // copies: the optimizer changes its own in place
  optimizer::OptimizerClock::State clock;
  Duration stall{};  // how long the copy took: updates waited for it
};

struct CutResult {
  CutOutcome outcome = CutOutcome::kTooLate;
  uint64_t version = 0;  // of the captured parameters
};

using CutAnswer = std::variant<CutResult, Error>;
using CutCallback = std::function<void(CutAnswer)>;  // called exactly once; must not throw

// The one cut that a shard waits for, and the last one taken.
// Borrows: everything given to the constructor.
// Threads: loop-thread only.
// Blocks: while a small shard, or one on a device, is copied. A large one is copied where updates
// run, so that heartbeats are answered meanwhile.
class CutTaker {
 public:
  CutTaker(optimizer::ParameterStore& store, Updater& updater, OutwardCalls& calls,
           const Clock& clock);

  // Waits for `target`; take() or answer() ends the wait. A cut that already waits gives way.
  void arm(CutPosition target, Duration timeout, CutCallback callback);
  bool armed() const { return callback_ != nullptr; }
  const CutPosition& target() const { return target_; }

  // Captures the shard at the target, and answers kCaptured when all is copied. No update may run.
  void take();
  void answer(CutAnswer what);
  // No effect when none is armed.
  void extend(TimePoint deadline) { deadline_ = std::max(deadline_, deadline); }
  bool expired() const { return armed() && clock_.now() >= deadline_; }

  // The last capture; null when there is none. release() frees it.
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

  optimizer::ParameterStore& store_;
  Updater& updater_;
  OutwardCalls& calls_;
  const Clock& clock_;
  CutPosition target_;
  CutCallback callback_;
  TimePoint deadline_;
  std::deque<Taking> takings_;  // being copied, one after the other
  std::shared_ptr<const Capture> latest_;
};

}  // namespace dtf::replication
