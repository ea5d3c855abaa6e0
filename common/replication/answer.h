#pragma once

// The classes of a ps answer through callbacks, never from the middle of a method. Calls outwards
// (answers, messages to other ps) are queued and made when the outermost method of the shard is
// finished with its state, so a callback may call the shard again at once.

#include <deque>
#include <functional>
#include <memory>
#include <utility>
#include <variant>

#include "common/arena/parameter_version.h"
#include "common/base/clock.h"
#include "common/base/error.h"
#include "common/replication/step_state.h"

namespace dtf::replication {

// The answer to a pull or a push; kQueued has no parameters.
struct PushReply {
  StepState state;
  std::shared_ptr<const arena::ParameterVersion> parameters;
};

using PushAnswer = std::variant<PushReply, Error>;
using PushCallback = std::function<void(PushAnswer)>;  // called exactly once; must not throw

struct Arrived {};
using WaitAnswer = std::variant<Arrived, Error>;
using WaitCallback = std::function<void(WaitAnswer)>;  // called exactly once; must not throw

// Returns the deadline of a wait that starts `now`; a timeout beyond the clock's range never ends.
inline TimePoint deadlineAfter(TimePoint now, Duration timeout) {
  return timeout > TimePoint::max() - now ? TimePoint::max() : now + timeout;
}

// A queue of calls outwards.
// Owns: calls not yet made.
// Threads: loop-thread only.
class OutwardCalls {
 public:
  void add(std::function<void()> call) { calls_.push_back(std::move(call)); }

  // Held by every public method that changes state; the outermost one makes the calls as it ends.
  class Scope {
   public:
    explicit Scope(OutwardCalls& calls) : calls_(calls) { ++calls_.depth_; }
    ~Scope() { calls_.leave(); }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    OutwardCalls& calls_;
  };

 private:
  void leave() {
    // While the calls are made the depth stays 1: methods they enter only add to the queue.
    while (depth_ == 1 && !calls_.empty()) {
      const std::function<void()> call = std::move(calls_.front());
      calls_.pop_front();
      call();
    }
    --depth_;
  }

  std::deque<std::function<void()>> calls_;
  int depth_ = 0;
};

}  // namespace dtf::replication
