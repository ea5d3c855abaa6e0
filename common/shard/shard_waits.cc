#include "common/shard/shard_waits.h"

#include <fmt/format.h>

#include <utility>

#include "common/base/check.h"
#include "common/replication/membership.h"

namespace dtf::shard {

namespace {

// Whether `push` was made before the waiting call of the same worker.
bool isOlder(const ParkedCall& push, const ParkedCall& waiting) {
  if (!push.contribution || push.incarnation != waiting.incarnation) return false;
  // A worker that pulls has nothing to push before it is answered.
  if (!waiting.contribution) return true;
  return std::pair(push.contribution->epoch, push.contribution->step) <
         std::pair(waiting.contribution->epoch, waiting.contribution->step);
}

}  // namespace

ShardWaits::ShardWaits(const ShardOptions& options, replication::OutwardCalls& calls,
                       const Clock& clock)
    : options_(options),
      calls_(calls),
      clock_(clock),
      initialised_(calls, clock),
      parked_(calls, clock),
      aside_(calls, clock) {}

void ShardWaits::awaitInitialised(uint32_t rank, Duration timeout,
                                  replication::WaitCallback callback) {
  initialised_.add(rank, timeout, std::move(callback), replication::gaveWay(rank, options_.host()));
}

void ShardWaits::letGo() {
  initialised_.answerAll(replication::Arrived{});
}

void ShardWaits::park(uint32_t rank, ParkedCall call, replication::PushCallback callback) {
  DTF_CHECK(rank < options_.workers && callback != nullptr);
  const Error gave_way = replication::gaveWay(rank, options_.host());
  const Parked::Call* waiting = parked_.find(rank);
  if (waiting != nullptr && isOlder(call, waiting->detail))
    return calls_.add([callback = std::move(callback), gave_way] { callback(gave_way); });
  parked_.add(rank, options_.rejoin_timeout, std::move(callback), gave_way, std::move(call));
}

void ShardWaits::awaitAside(uint32_t rank, Aside what, replication::PushCallback callback) {
  aside_.add(rank, options_.step_timeout, std::move(callback),
             replication::gaveWay(rank, options_.host()), what);
}

void ShardWaits::drop(uint32_t rank, const Error& error) {
  initialised_.answer(rank, error);
  parked_.answer(rank, error);
  aside_.answer(rank, error);
}

void ShardWaits::dropAll(const Error& error) {
  initialised_.answerAll(error);
  parked_.answerAll(error);
  aside_.answerAll(error);
}

void ShardWaits::expire(const std::function<std::string()>& missing) {
  const auto late = [](const auto& call, Duration waited, const std::string& what) {
    return Error(ErrorCode::kDeadline,
                 fmt::format("{} has waited {} {}", replication::workerName(call.rank),
                             replication::secondsText(waited), what));
  };
  initialised_.expire([&](const auto& call) {
    return late(call, call.timeout,
                fmt::format("for the chief, {}, to initialise {}{}", kChief.name(),
                            options_.host().name(), missing()));
  });
  parked_.expire([&](const auto& call) {
    return late(call, clock_.now() - call.since,
                fmt::format("for {} to bring the values of {} back", kChief.name(),
                            options_.host().name()));
  });
  aside_.expire([&](const auto& call) {
    return late(call, call.timeout,
                fmt::format("on {} for the update that runs, to get the values after it",
                            options_.host().name()));
  });
}

}  // namespace dtf::shard
