#pragma once

// Calls of workers that wait for one event: for the values of a shard, for the others at a barrier,
// for the update of a step.

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "common/base/check.h"
#include "common/base/clock.h"
#include "common/base/error.h"
#include "common/replication/answer.h"

namespace dtf::replication {

// Shorter waits are not reported: workers take turns of milliseconds.
inline constexpr Duration kSaidAfter = std::chrono::seconds(1);

// At most one call of each worker waits. Every call is answered exactly once, through the queue of
// outward calls, or carried over by takeAll() or take(). On destruction, calls that still wait are
// dropped. `Detail`: the caller's own, of each call.
// Owns: the callbacks that wait.
// Borrows: `calls`, `clock` (must outlive this).
// Threads: loop-thread only.
// Blocks: never.
template <class Answer, class Detail = std::monostate>
class WaitingCalls {
 public:
  using Callback = std::function<void(Answer)>;
  struct Call {
    uint32_t rank = 0;
    Callback callback;
    Duration timeout{};
    TimePoint since;      // it came
    TimePoint deadline;   // since + timeout, unless it was extended
    uint64_t number = 0;  // in the order in which the calls came
    Detail detail{};
  };

  WaitingCalls(OutwardCalls& calls, const Clock& clock) : calls_(calls), clock_(clock) {}

  // Makes `callback` the worker's waiting call. An earlier one that waits is answered `gave_way`.
  void add(uint32_t rank, Duration timeout, Callback callback, const Error& gave_way,
           Detail detail = {}) {
    DTF_CHECK(callback != nullptr);
    answer(rank, gave_way);
    const TimePoint now = clock_.now();
    waiting_.emplace(rank, Call{rank, std::move(callback), timeout, now,
                                deadlineAfter(now, timeout), ++numbers_, std::move(detail)});
  }
  // Takes a call back that takeAll() gave out, with its deadline. None of its worker waits.
  void putBack(Call call) {
    const uint32_t rank = call.rank;
    DTF_CHECK(call.callback != nullptr && waiting_.emplace(rank, std::move(call)).second);
  }

  bool waits(uint32_t rank) const { return waiting_.contains(rank); }
  bool empty() const { return waiting_.empty(); }
  uint32_t size() const { return static_cast<uint32_t>(waiting_.size()); }
  // Returns the worker's call; null: none waits.
  const Call* find(uint32_t rank) const {
    const auto found = waiting_.find(rank);
    return found == waiting_.end() ? nullptr : &found->second;
  }
  // Returns a call that has waited for longer than kSaidAfter since it came or was extended, the
  // one with the lowest rank; null: none has.
  const Call* longWait() const {
    const TimePoint now = clock_.now();
    for (const auto& [rank, call] : waiting_)
      if (call.deadline != TimePoint::max() && now - (call.deadline - call.timeout) > kSaidAfter)
        return &call;
    return nullptr;
  }

  // Answers the worker's call. No effect when none waits.
  void answer(uint32_t rank, Answer what) {
    if (std::optional<Call> call = take(rank)) queue(std::move(call->callback), std::move(what));
  }
  // Answers all, in the order in which they came.
  void answerAll(const Answer& what) {
    for (Call& call : takeAll()) queue(std::move(call.callback), what);
  }

  // Gives the worker's call out, which waits no longer; nullopt: none waited.
  std::optional<Call> take(uint32_t rank) {
    const auto found = waiting_.find(rank);
    if (found == waiting_.end()) return std::nullopt;
    Call call = std::move(found->second);
    waiting_.erase(found);
    return call;
  }
  // Gives all out, in the order in which they came.
  std::vector<Call> takeAll() {
    std::map<uint64_t, Call> in_order;
    for (auto& [rank, call] : std::exchange(waiting_, {}))
      in_order.emplace(call.number, std::move(call));
    std::vector<Call> taken;
    for (auto& [number, call] : in_order) taken.push_back(std::move(call));
    return taken;
  }

  // Restarts the time of every call.
  void restart() {
    const TimePoint now = clock_.now();
    for (auto& [rank, call] : waiting_) call.deadline = deadlineAfter(now, call.timeout);
  }
  // Restarts the time of the worker's call. No effect when none waits.
  void restart(uint32_t rank) {
    const auto found = waiting_.find(rank);
    if (found != waiting_.end())
      found->second.deadline = deadlineAfter(clock_.now(), found->second.timeout);
  }
  // Restarts the time of every call, but none waits for longer than `most` since it came.
  void restartWithin(Duration most) {
    const TimePoint now = clock_.now();
    for (auto& [rank, call] : waiting_)
      call.deadline = std::max(call.deadline, std::min(deadlineAfter(now, call.timeout),
                                                       deadlineAfter(call.since, most)));
  }

  // Answers each call whose deadline has passed with `why(call)`, by rank.
  template <class Why>
  void expire(const Why& why) {
    const TimePoint now = clock_.now();
    std::vector<uint32_t> late;
    for (const auto& [rank, call] : waiting_)
      if (now >= call.deadline) late.push_back(rank);
    for (const uint32_t rank : late)
      if (const Call* call = find(rank)) answer(rank, why(*call));
  }

 private:
  void queue(Callback callback, Answer what) {
    calls_.add([callback = std::move(callback), what = std::move(what)] { callback(what); });
  }

  OutwardCalls& calls_;
  const Clock& clock_;
  std::map<uint32_t, Call> waiting_;  // by rank
  uint64_t numbers_ = 0;
};

}  // namespace dtf::replication
