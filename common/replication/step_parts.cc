#include "common/replication/step_parts.h"

#include <utility>

#include "common/replication/answer.h"

namespace dtf::replication {

StepParts::StepParts(const arena::ModelDeclaration& declaration, uint32_t workers,
                     const Clock& clock, const Patience& patience)
    : has_parts_(declaration.epochs.examples > 0),
      steps_(declaration.steps),
      clock_(clock),
      patience_(patience),
      workers_(workers) {
  for (uint32_t rank = 0; rank < workers; ++rank) lost(rank);
}

void StepParts::pushed(uint32_t rank, uint64_t steps) {
  workers_[rank].pushed = steps;
  workers_[rank].moved = clock_.now();
}

// Keeps `until`: a process that has just joined reads its data.
void StepParts::joined(uint32_t rank) {
  workers_[rank].is_here = true;
  workers_[rank].is_given_up = false;
  workers_[rank].moved = clock_.now();
}

void StepParts::lost(uint32_t rank) {
  workers_[rank].is_here = false;
  workers_[rank].until = deadlineAfter(clock_.now(), patience_.rejoin);
}

void StepParts::finished(uint32_t rank) {
  workers_[rank].is_here = false;
  workers_[rank].until = TimePoint{};
}

// A worker's part is the batches numbered step * workers + rank, as many as the job has steps.
bool StepParts::hasDonePart(uint32_t rank) const {
  const uint64_t part = steps_ / workers_.size() + (rank < steps_ % workers_.size() ? 1 : 0);
  return workers_[rank].pushed >= part;
}

bool StepParts::isAwaited(uint32_t rank) const {
  const bool may_come = workers_[rank].is_here || clock_.now() < workers_[rank].until;
  return has_parts_ && may_come && !hasDonePart(rank);
}

std::vector<uint32_t> StepParts::awaited() const {
  std::vector<uint32_t> awaited;
  for (uint32_t rank = 0; rank < workers_.size(); ++rank)
    if (isAwaited(rank)) awaited.push_back(rank);
  return awaited;
}

bool StepParts::mustWait(uint32_t rank) const {
  if (!has_parts_ || !hasDonePart(rank)) return false;
  for (uint32_t other = 0; other < workers_.size(); ++other)
    if (isAwaited(other)) return true;
  return false;
}

bool StepParts::rests(uint32_t rank) const {
  if (mustWait(rank)) return true;
  for (uint32_t other = 0; other < workers_.size(); ++other)
    if (!has_parts_ || !hasDonePart(other)) return false;
  return true;
}

std::vector<uint32_t> StepParts::takeGivenUp() {
  std::vector<uint32_t> given_up;
  for (uint32_t rank = 0; rank < workers_.size() && has_parts_; ++rank) {
    if (hasDonePart(rank) || isAwaited(rank) || std::exchange(workers_[rank].is_given_up, true))
      continue;
    given_up.push_back(rank);
  }
  return given_up;
}

bool StepParts::makeHeadway() const {
  const TimePoint now = clock_.now();
  for (uint32_t rank = 0; rank < workers_.size(); ++rank) {
    const Worker& worker = workers_[rank];
    const bool moves = worker.is_here && now < deadlineAfter(worker.moved, patience_.step);
    if (isAwaited(rank) && (moves || now < worker.until)) return true;
  }
  return false;
}

}  // namespace dtf::replication
