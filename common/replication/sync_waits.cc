// Second part of SyncCoordinator: which workers its calls wait for, and until when.

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/replication/membership.h"
#include "common/replication/sync_coordinator.h"

namespace dtf::replication {

// Whether ps/0 has made the step with a gradient of `rank` that is missing here: no other will do.
bool SyncCoordinator::isMissed(uint32_t rank) const {
  return decided_ && !workers_[rank].complete() &&
         std::binary_search(decided_->begin(), decided_->end(), rank);
}

std::vector<uint32_t> SyncCoordinator::awaitedReturns() const {
  if (updater_.busy() || !context_.store.initialised() || isDone()) return {};
  if (decided_)
    return gone_.awaited([this](uint32_t rank) { return !isMissed(rank); }, workers_.size());
  // A short step misses nothing of a worker without examples in it.
  const size_t counting = shares_.counting(step());
  return gone_.awaited(
      [this](uint32_t rank) {
        return workers_[rank].hasContributed() || !shares_.counts(step(), rank);
      },
      workers_.size() - counting + std::min<size_t>(needed_, counting));
}

bool SyncCoordinator::awaitsReturn() const {
  return !awaitedReturns().empty();
}

void SyncCoordinator::extendDeadlines() {
  waiting_.restart();
  cut_.extend(deadlineAfter(context_.clock.now(), context_.step_timeout));
}

// See GoneWorkers.
std::optional<std::string> SyncCoordinator::hopelessFor(uint32_t rank) const {
  if (updater_.busy()) return std::nullopt;
  for (uint32_t other = 0; other < workers_.size(); ++other) {
    const std::optional<std::string> gone = isMissed(other) ? gone_.givenUp(other) : std::nullopt;
    if (gone)
      return fmt::format(
          "{} in step {}; {} has applied its gradient, but {} lost it with its earlier "
          "process: start the job again, from its checkpoint",
          *gone, step(), context_.hosts.of(0).name(), context_.host().name());
  }
  const auto least = std::min<size_t>(needed_, workers_.size());
  const bool is_short = shares_.isShort(step());  // it takes the gradients that come
  const std::optional<std::string> why = gone_.hopelessFor(
      rank,
      [this](uint32_t other) {
        return workers_[other].hasContributed() || !shares_.counts(step(), other);
      },
      is_short ? workers_.size() - shares_.counting(step()) + 1 : least);
  if (!why) return std::nullopt;
  if (is_short)
    return fmt::format("{} in step {}; the other workers have no examples in it", *why, step());
  return hasBackups() ? fmt::format("{} in step {}; sync training needs {} of its {} workers", *why,
                                    step(), least, workers_.size())
                      : fmt::format("{} in step {}; sync training needs all {} workers", *why,
                                    step(), least);
}

void SyncCoordinator::failHopeless() {
  for (uint32_t rank = 0; rank < workers_.size(); ++rank) {
    if (!waiting_.waits(rank)) continue;
    const std::optional<std::string> why = hopelessFor(rank);
    if (why) waiting_.answer(rank, Error(ErrorCode::kUnavailable, *why));
  }
  failHopelessCut();
}

// A cut lies beyond the current step: if the chief can't finish its step, the cut is never reached.
void SyncCoordinator::failHopelessCut() {
  if (!cut_.armed()) return;
  const std::optional<std::string> why = hopelessFor(kChief.index);
  if (!why) return;
  cut_.answer(Error(ErrorCode::kUnavailable,
                    fmt::format("no checkpoint at {}: {}", cutText(cut_.target()), *why)));
}

// A stopped job never gets to later steps.
void SyncCoordinator::failCutBeyondTheEnd() {
  if (!cut_.armed() || cut_.target()[0] <= std::max(last_step_, position(false)[0])) return;
  cut_.answer(Error(ErrorCode::kUnavailable,
                    fmt::format("no checkpoint at {}: the job was stopped at step {}",
                                cutText(cut_.target()), last_step_)));
}

std::string SyncCoordinator::waitingForText() const {
  if (updater_.busy()) return "the update itself";
  std::vector<uint32_t> present;
  std::vector<uint32_t> missing;
  for (uint32_t rank = 0; rank < workers_.size(); ++rank) {
    if (workers_[rank].complete()) present.push_back(rank);
    if (decided_ ? isMissed(rank) : !workers_[rank].hasContributed()) missing.push_back(rank);
  }
  if (!hasBackups() || decided_) return workerNames(missing);
  return fmt::format("gradients of {} workers on every ps; {} has the gradients of {}",
                     std::min(needed_, shares_.counting(step())), context_.host().name(),
                     workerNames(present));
}

std::string SyncCoordinator::awaitedText() const {
  if (const std::vector<uint32_t> lost = awaitedReturns(); !lost.empty())
    return fmt::format("the return of {} in step {}", workerNames(lost), step());
  return waiting_.longWait() ? fmt::format("{} in step {}", waitingForText(), step()) : "";
}

void SyncCoordinator::failAll(const Error& error) {
  const OutwardCalls::Scope scope(context_.calls);
  waiting_.answerAll(error);
  cut_.answer(error);
}

std::vector<Coordinator::Stranded> SyncCoordinator::takeWaiting() {
  const OutwardCalls::Scope scope(context_.calls);
  std::vector<Stranded> stranded;
  strand(waiting_, stranded);
  cut_.answer(wentBackDuringCut(context_.host()));
  return stranded;
}

void SyncCoordinator::tick() {
  const OutwardCalls::Scope scope(context_.calls);
  // A return has a deadline of its own; the deadline of the step starts when the lost worker is
  // back.
  if (awaitsReturn()) extendDeadlines();
  failHopeless();  // gives up workers that did not return in time
  if (leads()) advance();
  waiting_.expire([this](const WaitingCalls<PushAnswer>::Call& call) {
    return Error(
        ErrorCode::kDeadline,
        fmt::format("{} has waited {} in step {} on {} for {}", workerName(call.rank),
                    secondsText(call.timeout), step(), context_.host().name(), waitingForText()));
  });
  if (!cut_.expired()) return;
  cut_.answer(Error(ErrorCode::kDeadline,
                    fmt::format("{} has waited {} for {}, where a checkpoint is due; it is at "
                                "step {}, waiting for {}",
                                context_.host().name(), secondsText(context_.step_timeout),
                                cutText(cut_.target()), step(), waitingForText())));
}

}  // namespace dtf::replication
