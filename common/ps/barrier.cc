#include "common/ps/barrier.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>
#include <vector>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/ps/epoch.h"
#include "common/ps/membership.h"

namespace dtf::ps {

namespace {

constexpr std::string_view kTrained = "trained.";
constexpr std::string_view kSaved = "saved.";

// The number of the epoch that a barrier is of. Nullopt: of none.
std::optional<uint64_t> epochNumberIn(std::string_view name) {
  for (const std::string_view prefix : {kTrained, kSaved}) {
    if (!name.starts_with(prefix)) continue;
    uint64_t number = 0;
    const char* const last = name.data() + name.size();
    const auto [end, error] = std::from_chars(name.data() + prefix.size(), last, number);
    if (error == std::errc() && end == last) return number;
  }
  return std::nullopt;
}

}  // namespace

std::string trainedBarrier(uint64_t epoch) {
  return fmt::format("{}{}", kTrained, epochNumber(epoch));
}

std::string savedBarrier(uint64_t epoch) {
  return fmt::format("{}{}", kSaved, epochNumber(epoch));
}

Duration barrierTimeout(std::string_view name, const cluster::Timeouts& timeouts) {
  if (name == kStartBarrier) return fromSeconds(timeouts.start_seconds);
  // The chief captures and writes the end meanwhile, each for finish_seconds at most.
  const double waits = name.starts_with(kSaved) ? 2 : 1;
  return fromSeconds(waits * timeouts.finish_seconds);
}

Barriers::Barriers(uint32_t workers, OutwardCalls& calls, const Clock& clock)
    : workers_(workers), calls_(calls), clock_(clock) {}

void Barriers::answer(Waiter& waiter, WaitAnswer what) {
  calls_.add([callback = std::move(waiter.callback), what = std::move(what)] { callback(what); });
}

void Barriers::arrive(std::string_view name, uint32_t rank, Arrival arrival, Duration timeout,
                      WaitCallback callback) {
  const OutwardCalls::Scope scope(calls_);
  Waiter waiter{std::move(callback), deadlineAfter(clock_.now(), timeout), timeout};
  if (isLeft(name)) return answer(waiter, Arrived{});
  auto found = barriers_.find(name);
  if (found == barriers_.end()) {
    const bool bad_name = name.empty() || name.size() > kBarrierNameBytesMax;
    if (bad_name || barriers_.size() >= kBarriersMax) {
      return answer(
          waiter,
          Error(ErrorCode::kBadConfig,
                bad_name ? fmt::format("a barrier's name has 1 to {} bytes, not {}",
                                       kBarrierNameBytesMax, name.size())
                         : fmt::format(
                               "the job has {} barriers already, the most; '{}' would be one more",
                               kBarriersMax, name)));
    }
    found = barriers_.try_emplace(std::string(name)).first;
  }
  Barrier& barrier = found->second;
  if (arrival == Arrival::kPassedBefore && !barrier.open) open(barrier);
  if (barrier.open) return answer(waiter, Arrived{});
  barrier.arrived.insert(rank);
  const auto earlier = barrier.waiters.find(rank);
  if (earlier != barrier.waiters.end()) {
    answer(earlier->second,
           Error(ErrorCode::kUnavailable,
                 fmt::format("{} arrived at barrier '{}' a second time; this wait gave way to "
                             "the newer one",
                             workerName(rank), name)));
    barrier.waiters.erase(earlier);
  }
  barrier.waiters.emplace(rank, std::move(waiter));
  openIfComplete(barrier);
}

void Barriers::openIfComplete(Barrier& barrier) {
  DTF_CHECK(!barrier.open);  // it opens once
  for (uint32_t rank = 0; rank < workers_; ++rank) {
    if (!barrier.arrived.contains(rank) && !absent_.contains(rank)) return;
  }
  open(barrier);
}

void Barriers::open(Barrier& barrier) {
  DTF_CHECK(!barrier.open);
  barrier.open = true;
  for (auto& [rank, waiter] : barrier.waiters) answer(waiter, Arrived{});
  barrier.waiters.clear();
}

bool Barriers::isLeft(std::string_view name) const {
  const std::optional<uint64_t> number = epochNumberIn(name);
  return number && *number < epoch_number_;
}

void Barriers::beginEpoch(uint64_t epoch) {
  const OutwardCalls::Scope scope(calls_);
  DTF_CHECK(validEpoch(epoch));
  epoch_number_ = epochNumber(epoch);
  for (auto& [name, barrier] : barriers_)
    if (!barrier.open && isLeft(name)) open(barrier);
}

void Barriers::left(uint32_t rank) {
  const OutwardCalls::Scope scope(calls_);
  if (!absent_.insert(rank).second) return;
  for (auto& [name, barrier] : barriers_) {
    if (!barrier.open) openIfComplete(barrier);
  }
}

void Barriers::tick() {
  const OutwardCalls::Scope scope(calls_);
  const TimePoint now = clock_.now();
  for (auto& [name, barrier] : barriers_) {
    std::vector<uint32_t> missing;
    for (uint32_t rank = 0; rank < workers_; ++rank) {
      if (!barrier.arrived.contains(rank) && !absent_.contains(rank)) missing.push_back(rank);
    }
    for (auto at = barrier.waiters.begin(); at != barrier.waiters.end();) {
      Waiter& waiter = at->second;
      if (now < waiter.deadline) {
        ++at;
        continue;
      }
      answer(waiter, Error(ErrorCode::kUnavailable,
                           fmt::format("{} waited {} at barrier '{}' for {}; look at its log, or "
                                       "give the wait more time",
                                       workerName(at->first), secondsText(waiter.timeout), name,
                                       workerNames(missing))));
      // Whoever gave up has not arrived any more: the others must not pass on its account.
      barrier.arrived.erase(at->first);
      at = barrier.waiters.erase(at);
    }
  }
}

uint32_t Barriers::waiting() const {
  size_t count = 0;
  for (const auto& [name, barrier] : barriers_) count += barrier.waiters.size();
  return static_cast<uint32_t>(count);
}

}  // namespace dtf::ps
