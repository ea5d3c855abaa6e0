// Shard, fourth part: what is read beside training, between two updates.

#include <fmt/format.h>

#include <set>
#include <utility>

#include "common/base/error.h"
#include "common/ps/shard.h"

namespace dtf::ps {

void Shard::pullAside(uint32_t rank, Incarnation incarnation, Aside what, PushCallback callback) {
  const OutwardCalls::Scope scope(calls_);
  std::optional<Error> error = membershipError(rank, incarnation);
  if (!error && mayPark() && !initialised())
    return park(
        {.rank = rank, .incarnation = incarnation, .aside = what, .callback = std::move(callback)});
  if (!error) error = stepError(rank, incarnation, "a pull beside training");
  if (error) return calls_.add([callback = std::move(callback), error] { callback(*error); });
  dropAside(rank, gaveWay(rank));
  aside_waiters_.push_back(
      {rank, what, std::move(callback), deadlineAfter(clock_.now(), options_.step_timeout)});
  coordinator_->whenIdle([this] { answerAside(); });
}

void Shard::dropAside(uint32_t rank, const Error& error) {
  std::erase_if(aside_waiters_, [&](AsideWaiter& waiter) {
    if (waiter.rank != rank) return false;
    calls_.add([callback = std::move(waiter.callback), error] { callback(error); });
    return true;
  });
}

void Shard::expireAside() {
  std::set<uint32_t> late;
  for (const AsideWaiter& waiter : aside_waiters_)
    if (clock_.now() >= waiter.deadline) late.insert(waiter.rank);
  for (const uint32_t rank : late)
    dropAside(rank, Error(ErrorCode::kDeadline,
                          fmt::format("{} has waited {} on ps/{} for the update that runs, to "
                                      "get the values after it",
                                      workerName(rank), secondsText(options_.step_timeout),
                                      options_.ps_task)));
}

void Shard::answerAside() {
  for (AsideWaiter& waiter : std::exchange(aside_waiters_, {})) {
    PushAnswer answer =
        Error(ErrorCode::kBadConfig, fmt::format("ps/{} keeps no moving averages; declare an "
                                                 "optimizer with moving_average",
                                                 options_.ps_task));
    const bool is_averages = waiter.what == Aside::kAverages;
    if (std::shared_ptr<const Snapshot> values =
            is_averages ? store_->copyAverages() : store_->readable()) {
      StepState state;
      state.global_step = values->version();
      state.epoch = epoch_;
      answer = PushReply{state, std::move(values)};
    }
    calls_.add(
        [callback = std::move(waiter.callback), answer = std::move(answer)] { callback(answer); });
  }
}

}  // namespace dtf::ps
