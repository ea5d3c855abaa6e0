// SyncCoordinator, second part: for whom its calls wait, and until when.

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/ps/membership.h"
#include "common/ps/sync_coordinator.h"

namespace dtf::ps {

// Whether ps/0 has made the step of a gradient of `rank` that is not here: no other will do.
bool SyncCoordinator::isMissed(uint32_t rank) const {
  return decided_ && !workers_[rank].complete() &&
         std::binary_search(decided_->begin(), decided_->end(), rank);
}

std::vector<uint32_t> SyncCoordinator::awaitedReturns() const {
  if (updater_.busy() || !context_.store.initialised() || isDone()) return {};
  if (decided_)
    return gone_.awaited([this](uint32_t rank) { return !isMissed(rank); }, workers_.size());
  // In a short step nothing is missed of a worker that has no examples in it.
  const size_t counting = shares_.counting(step());
  return gone_.awaited(
      [this](uint32_t rank) { return workers_[rank].complete() || !shares_.counts(step(), rank); },
      workers_.size() - counting + std::min<size_t>(needed_, counting));
}

bool SyncCoordinator::awaitsReturn() const {
  return !awaitedReturns().empty();
}

void SyncCoordinator::extendDeadlines() {
  const TimePoint later = deadlineAfter(context_.clock.now(), context_.step_timeout);
  extendCalls(workers_, later);
  cut_.extend(later);
}

// See GoneWorkers.
std::optional<std::string> SyncCoordinator::hopelessFor(uint32_t rank) const {
  if (updater_.busy()) return std::nullopt;
  for (uint32_t other = 0; other < workers_.size(); ++other) {
    const std::optional<std::string> gone = isMissed(other) ? gone_.givenUp(other) : std::nullopt;
    if (gone)
      return fmt::format(
          "{} in step {}; ps/0 has applied its gradient, but ps/{} lost it with its earlier "
          "process: start the job again, from its checkpoint",
          *gone, step(), context_.ps_task);
  }
  const auto least = std::min<size_t>(needed_, workers_.size());
  const bool is_short = shares_.isShort(step());  // it is made of what comes
  const std::optional<std::string> why = gone_.hopelessFor(
      rank,
      [this](uint32_t other) {
        return workers_[other].complete() || !shares_.counts(step(), other);
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
    if (!workers_[rank].waiting) continue;
    const std::optional<std::string> why = hopelessFor(rank);
    if (why) cancelWaiting(rank, Error(ErrorCode::kUnavailable, *why));
  }
  failHopelessCut();
}

// A cut is at a step beyond the current one: what keeps the chief from its step keeps its
// checkpoint from its cut.
void SyncCoordinator::failHopelessCut() {
  if (!cut_.armed()) return;
  const std::optional<std::string> why = hopelessFor(kChief.index);
  if (!why) return;
  cut_.answer(Error(ErrorCode::kUnavailable,
                    fmt::format("no checkpoint at {}: {}", cutText(cut_.target()), *why)));
}

// A job that is stopped never gets to the steps behind.
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
    if (decided_ ? isMissed(rank) : !workers_[rank].complete()) missing.push_back(rank);
  }
  if (!hasBackups() || decided_) return workerNames(missing);
  return fmt::format("gradients of {} workers on every ps; ps/{} has the gradients of {}",
                     std::min(needed_, shares_.counting(step())), context_.ps_task,
                     workerNames(present));
}

std::string SyncCoordinator::awaitedText() const {
  if (const std::vector<uint32_t> lost = awaitedReturns(); !lost.empty())
    return fmt::format("the return of {} in step {}", workerNames(lost), step());
  const TimePoint now = context_.clock.now();
  const bool long_wait = std::any_of(workers_.begin(), workers_.end(), [&](const Worker& worker) {
    return worker.waiting && hasWaited(worker.deadline, now, context_.step_timeout);
  });
  return long_wait ? fmt::format("{} in step {}", waitingForText(), step()) : "";
}

void SyncCoordinator::failAll(const Error& error) {
  const OutwardCalls::Scope scope(context_.calls);
  for (uint32_t rank = 0; rank < workers_.size(); ++rank) cancelWaiting(rank, error);
  cut_.answer(error);
}

std::vector<Coordinator::Stranded> SyncCoordinator::takeWaiting() {
  const OutwardCalls::Scope scope(context_.calls);
  std::vector<Stranded> stranded = takeCalls(workers_);
  cut_.answer(wentBackDuringCut(context_.ps_task));
  return stranded;
}

void SyncCoordinator::tick() {
  const OutwardCalls::Scope scope(context_.calls);
  // A return has a deadline of its own: the step's begins when the lost worker is there.
  if (awaitsReturn()) extendDeadlines();
  failHopeless();  // who did not return in time is given up
  if (leads()) advance();
  const TimePoint now = context_.clock.now();
  for (uint32_t rank = 0; rank < workers_.size(); ++rank) {
    if (!workers_[rank].waiting || now < workers_[rank].deadline) continue;
    cancelWaiting(rank, Error(ErrorCode::kDeadline,
                              fmt::format("{} has waited {} in step {} on ps/{} for {}",
                                          workerName(rank), secondsText(context_.step_timeout),
                                          step(), context_.ps_task, waitingForText())));
  }
  if (!cut_.expired()) return;
  cut_.answer(Error(ErrorCode::kDeadline,
                    fmt::format("ps/{} has waited {} for {}, where a checkpoint is due; it is at "
                                "step {}, waiting for {}",
                                context_.ps_task, secondsText(context_.step_timeout),
                                cutText(cut_.target()), step(), waitingForText())));
}

}  // namespace dtf::ps
