#pragma once

// The calls of workers that wait for a shard's values, as the coordinator's calls wait for steps.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/error.h"
#include "common/base/ids.h"
#include "common/replication/coordinator.h"
#include "common/replication/waiting_calls.h"
#include "common/shard/shard_options.h"

namespace dtf::shard {

// How long calls wait for a live chief to bring values: it may read a large checkpoint from a slow
// disk, more than once.
inline constexpr Duration kBringBackMax = std::chrono::minutes(30);

// Values to read beside training.
enum class Aside : uint8_t { kAverages, kParameters };

// A pull or a push that waits for values of an epoch.
struct ParkedCall {
  Incarnation incarnation;
  uint64_t epoch = 0;  // a pull's: the earliest
  replication::Wanted wanted{};
  std::optional<replication::Contribution> contribution{};  // a push's
  std::optional<Aside> aside{};                             // of values beside training
};

// Three lists, in each at most one call of each worker:
//
//   kind          waits for                            until
//   initialised   the first values                     its own timeout
//   parked        values that are brought back         rejoin_timeout, longer while a chief lives
//   aside         the end of the update that runs      step_timeout
//
// Owns: the callbacks that wait.
// Borrows: everything given to the constructor (must outlive this).
// Threads: loop-thread only.
// Blocks: never.
class ShardWaits {
 public:
  using Parked = replication::WaitingCalls<replication::PushAnswer, ParkedCall>;
  using Beside = replication::WaitingCalls<replication::PushAnswer, Aside>;

  ShardWaits(const ShardOptions& options, replication::OutwardCalls& calls, const Clock& clock);

  void awaitInitialised(uint32_t rank, Duration timeout, replication::WaitCallback callback);
  // Answers the calls that wait for the first values.
  void letGo();
  void dropInitialised(uint32_t rank, const Error& error) { initialised_.answer(rank, error); }

  // A push that was made before the worker's waiting call gives way to that one: it is a late
  // repetition on another connection.
  void park(uint32_t rank, ParkedCall call, replication::PushCallback callback);
  // Parks a call again that takeParked() gave out, with its deadline.
  void parkAgain(Parked::Call call) { parked_.putBack(std::move(call)); }
  std::vector<Parked::Call> takeParked() { return parked_.takeAll(); }
  bool anyParked() const { return !parked_.empty(); }
  // Restarts the time of the parked calls. None waits for longer than kBringBackMax.
  void holdParked() { parked_.restartWithin(kBringBackMax); }

  void awaitAside(uint32_t rank, Aside what, replication::PushCallback callback);
  std::vector<Beside::Call> takeAside() { return aside_.takeAll(); }
  bool anyAside() const { return !aside_.empty(); }
  void dropAside(const Error& error) { aside_.answerAll(error); }

  // Answers the worker's calls with `error`.
  void drop(uint32_t rank, const Error& error);
  void dropAll(const Error& error);
  // Answers calls whose deadline has passed. `missing`: what the first values wait for, to follow
  // "has waited 10 s for the chief, worker/0, to initialise ps/1".
  void expire(const std::function<std::string()>& missing);
  uint32_t size() const { return initialised_.size() + parked_.size() + aside_.size(); }

 private:
  const ShardOptions& options_;
  replication::OutwardCalls& calls_;
  const Clock& clock_;
  replication::WaitingCalls<replication::WaitAnswer> initialised_;
  Parked parked_;
  Beside aside_;
};

}  // namespace dtf::shard
