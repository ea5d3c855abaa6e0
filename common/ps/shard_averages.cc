// Shard, fourth part: pulls of moving averages, which are read between two updates.

#include <fmt/format.h>

#include <set>
#include <utility>

#include "common/base/error.h"
#include "common/ps/shard.h"

namespace dtf::ps {

void Shard::pullAverages(uint32_t rank, Incarnation incarnation, PushCallback callback) {
  const OutwardCalls::Scope scope(calls_);
  std::optional<Error> error = membershipError(rank, incarnation);
  if (!error && mayPark() && !initialised())
    return park({.rank = rank,
                 .incarnation = incarnation,
                 .averages = true,
                 .callback = std::move(callback)});
  if (!error) error = stepError(rank, incarnation, "a pull of moving averages");
  if (error) return calls_.add([callback = std::move(callback), error] { callback(*error); });
  dropAverages(rank, gaveWay(rank));
  averages_waiters_.push_back(
      {rank, std::move(callback), deadlineAfter(clock_.now(), options_.step_timeout)});
  coordinator_->whenIdle([this] { answerAverages(); });
}

void Shard::dropAverages(uint32_t rank, const Error& error) {
  std::erase_if(averages_waiters_, [&](AveragesWaiter& waiter) {
    if (waiter.rank != rank) return false;
    calls_.add([callback = std::move(waiter.callback), error] { callback(error); });
    return true;
  });
}

void Shard::expireAverages() {
  std::set<uint32_t> late;
  for (const AveragesWaiter& waiter : averages_waiters_)
    if (clock_.now() >= waiter.deadline) late.insert(waiter.rank);
  for (const uint32_t rank : late)
    dropAverages(rank, Error(ErrorCode::kDeadline,
                             fmt::format("{} has waited {} on ps/{} for the update that runs, to "
                                         "get the moving averages after it",
                                         workerName(rank), secondsText(options_.step_timeout),
                                         options_.ps_task)));
}

void Shard::answerAverages() {
  for (AveragesWaiter& waiter : std::exchange(averages_waiters_, {})) {
    PushAnswer answer =
        Error(ErrorCode::kBadConfig, fmt::format("ps/{} keeps no moving averages; declare an "
                                                 "optimizer with moving_average",
                                                 options_.ps_task));
    if (std::shared_ptr<const Snapshot> averages = store_->copyAverages()) {
      StepState state;
      state.global_step = averages->version();
      state.epoch = epoch_;
      answer = PushReply{state, std::move(averages)};
    }
    calls_.add(
        [callback = std::move(waiter.callback), answer = std::move(answer)] { callback(answer); });
  }
}

}  // namespace dtf::ps
