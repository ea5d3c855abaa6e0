#pragma once

// Calls that a hostile client has made, each with the time by which it must be answered.

#include <kj/async.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/manual_time.h"

namespace dtf::fuzz {

// Owns: the newest kMost calls. Borrows: `time`.
// Threads: one.
class PendingCalls {
 public:
  explicit PendingCalls(ManualTime& time) : time_(time) {}

  // `due`: from now. An error is an answer, too.
  void keep(kj::Promise<void> call, Duration due) {
    if (calls_.size() >= kMost) calls_.erase(calls_.begin());
    const auto answered = std::make_shared<bool>(false);
    auto promise =
        call.then([answered] { *answered = true; }).eagerlyEvaluate([answered](kj::Exception&&) {
          *answered = true;
        });
    calls_.push_back({kj::mv(promise), time_.clock().now() + due, answered});
  }
  // Nobody waits for one of them any more. False: there is none.
  bool drop(size_t which) {
    if (calls_.empty()) return false;
    calls_.erase(calls_.begin() + static_cast<std::ptrdiff_t>(which % calls_.size()));
    return true;
  }
  void clear() { calls_.clear(); }

  // None outlasts its time by more than `grace`. `settle` runs all that can run.
  void awaitAll(Duration grace, const std::function<void()>& settle) {
    for (const Call& call : calls_) {
      const Duration left = std::max(call.due - time_.clock().now(), Duration{0});
      if (!*call.answered) time_.advance(left + grace, settle);
      FUZZ_CHECK(*call.answered);
    }
  }

 private:
  static constexpr size_t kMost = 64;
  struct Call {
    kj::Promise<void> promise;
    TimePoint due;
    std::shared_ptr<bool> answered;
  };

  ManualTime& time_;
  std::vector<Call> calls_;
};

}  // namespace dtf::fuzz
