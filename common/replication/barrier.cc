#include "common/replication/barrier.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>
#include <vector>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/replication/epoch.h"
#include "common/replication/membership.h"

namespace dtf::replication {

namespace {

constexpr std::string_view kTrained = "trained.";
constexpr std::string_view kSaved = "saved.";

// Returns the number of the epoch in a barrier's name; nullopt: it has none.
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

void Barriers::arrive(std::string_view name, uint32_t rank, Arrival arrival, Duration timeout,
                      WaitCallback callback) {
  const OutwardCalls::Scope scope(calls_);
  const auto answer = [&](WaitAnswer what) {
    calls_.add([callback = std::move(callback), what = std::move(what)] { callback(what); });
  };
  if (isLeft(name)) return answer(Arrived{});
  auto found = barriers_.find(name);
  if (found == barriers_.end()) {
    const bool bad_name = name.empty() || name.size() > kBarrierNameBytesMax;
    if (bad_name || barriers_.size() >= kBarriersMax) {
      return answer(Error(
          ErrorCode::kBadConfig,
          bad_name
              ? fmt::format("a barrier's name has 1 to {} bytes, not {}", kBarrierNameBytesMax,
                            name.size())
              : fmt::format("the job has {} barriers already, the most; '{}' would be one more",
                            kBarriersMax, name)));
    }
    found = barriers_.try_emplace(std::string(name), calls_, clock_).first;
  }
  Barrier& barrier = found->second;
  if (arrival == Arrival::kPassedBefore && !barrier.open) open(barrier);
  if (barrier.open) return answer(Arrived{});
  barrier.arrived.insert(rank);
  barrier.waiting.add(
      rank, timeout, std::move(callback),
      Error(ErrorCode::kUnavailable,
            fmt::format("{} arrived at barrier '{}' a second time; this wait gave way to "
                        "the newer one",
                        workerName(rank), name)));
  openIfComplete(barrier);
}

std::vector<uint32_t> Barriers::missingAt(const Barrier& barrier) const {
  std::vector<uint32_t> missing;
  for (uint32_t rank = 0; rank < workers_; ++rank)
    if (!barrier.arrived.contains(rank) && !absent_.contains(rank)) missing.push_back(rank);
  return missing;
}

void Barriers::openIfComplete(Barrier& barrier) {
  DTF_CHECK(!barrier.open);  // it opens once
  if (missingAt(barrier).empty()) open(barrier);
}

void Barriers::open(Barrier& barrier) {
  DTF_CHECK(!barrier.open);
  barrier.open = true;
  barrier.waiting.answerAll(Arrived{});
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
  for (auto& entry : barriers_) {
    const std::string& name = entry.first;
    Barrier& barrier = entry.second;
    const std::vector<uint32_t> missing = missingAt(barrier);
    barrier.waiting.expire([&](const WaitingCalls<WaitAnswer>::Call& call) {
      // A worker that gave up no longer counts as arrived: the others must not pass because of it.
      barrier.arrived.erase(call.rank);
      return Error(ErrorCode::kUnavailable,
                   fmt::format("{} waited {} at barrier '{}' for {}; look at its log, or "
                               "give the wait more time",
                               workerName(call.rank), secondsText(call.timeout), name,
                               workerNames(missing)));
    });
  }
}

uint32_t Barriers::waiting() const {
  uint32_t count = 0;
  for (const auto& [name, barrier] : barriers_) count += barrier.waiting.size();
  return count;
}

}  // namespace dtf::replication
