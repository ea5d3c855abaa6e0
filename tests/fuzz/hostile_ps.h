#pragma once

// A ps that answers a worker as the program says: any error, any values, late, never, or with the
// end of the connection. Without an answer in the program it replies like a ps.

#include <deque>
#include <functional>
#include <memory>
#include <string>

#include "common/wire/connection_set.h"
#include "common/wire/ps.capnp.h"
#include "tests/fuzz/arguments.h"
#include "tests/fuzz/manual_time.h"

namespace dtf::fuzz {

// The kinds of calls. Each has its own answers, so that heartbeats don't take those of a step.
enum class Asked { kControl, kData, kHeartbeat, kCheckpoint };
inline constexpr size_t kAskedKinds = 4;

// Borrows: `time` (must outlive every promise made here).
// Threads: one.
class Answers {
 public:
  explicit Answers(ManualTime& time) : time_(time) {}

  void add(Asked asked, std::string answer) { queues_[index(asked)].push_back(std::move(answer)); }
  void clear() {
    for (auto& queue : queues_) queue.clear();
  }

  // Calls `answer` with the arguments of the next answer, now or later; or fails, or never does.
  // Without more answers: at once, with empty arguments.
  kj::Promise<void> next(Asked asked, std::function<void(Arguments&)> answer,
                         const wire::ConnectionRef& connection);

  // Ends the calls that wait for their answer. The RPC layer keeps them alive without their
  // connection, each with its timer, until their answer.
  void giveUp() { waiting_.cancel("the ps ends"); }

 private:
  static size_t index(Asked asked) { return static_cast<size_t>(asked); }

  ManualTime& time_;
  std::deque<std::string> queues_[kAskedKinds];
  kj::Canceler waiting_;
};

// Bootstraps of the two kinds of connection.
// Borrows: `answers` (must outlive the connection).
capnp::Capability::Client hostileGate(Answers& answers, wire::ConnectionRef connection);
capnp::Capability::Client hostileDataGate(Answers& answers, wire::ConnectionRef connection);

}  // namespace dtf::fuzz
