#include "common/replication/staleness_bound.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"

namespace dtf::replication {

StalenessBound::StalenessBound(std::optional<uint64_t> staleness, uint32_t workers, bool leads,
                               std::function<bool(uint32_t)> rests)
    : staleness_(staleness), leads_(leads), rests_(std::move(rests)), workers_(workers) {
  DTF_CHECK(rests_ != nullptr);
}

bool StalenessBound::isSane(uint64_t clock) const {
  return !staleness_ || (clock > 0 && clock < kProgressEnd - 1);
}

uint64_t StalenessBound::furthest() const {
  uint64_t furthest = 0;
  for (const Worker& worker : workers_) furthest = std::max(furthest, worker.clock);
  return furthest;
}

// Returns the clock at which a worker begins to count. No counting worker is more than staleness +
// 1 ahead, so the furthest was near the others when it was lost.
uint64_t StalenessBound::firstClock() const {
  return slowest_ != kProgressEnd ? slowest_ : std::max(kProgressFirst, furthest());
}

void StalenessBound::begin(uint32_t rank, uint64_t brought) {
  Worker& worker = workers_[rank];
  if (!staleness_ || (leads_ ? worker.counts : brought == 0)) return;
  worker.clock = leads_ ? firstClock() : brought;
  worker.counts = true;
  findSlowest();
}

uint64_t StalenessBound::after(uint32_t rank, uint64_t brought) const {
  if (!staleness_) return 0;
  if (!leads_) return brought + 1;
  return workers_[rank].counts ? workers_[rank].clock + 1 : firstClock();
}

void StalenessBound::advance(uint32_t rank, uint64_t brought) {
  if (!staleness_) return;
  workers_[rank].clock = after(rank, brought);
  workers_[rank].counts = true;
  findSlowest();
}

void StalenessBound::countNoMore(uint32_t rank) {
  workers_[rank].counts = false;
  findSlowest();
}

void StalenessBound::remember(uint32_t rank, uint64_t clock) {
  DTF_CHECK(!workers_[rank].counts);
  workers_[rank].clock = clock;
}

void StalenessBound::recall(uint32_t rank, bool is_here) {
  if (!staleness_) return;
  Worker& worker = workers_[rank];
  worker.counts =
      leads_ && is_here && worker.clock > 0 && furthest() - worker.clock <= *staleness_ + 1;
  findSlowest();
}

void StalenessBound::findSlowest() {
  slowest_ = kProgressEnd;
  for (uint32_t rank = 0; rank < workers_.size(); ++rank)
    if (workers_[rank].counts && !rests_(rank)) slowest_ = std::min(slowest_, workers_[rank].clock);
}

bool StalenessBound::mustWait(uint32_t rank) const {
  const Worker& worker = workers_[rank];
  return staleness_ && worker.counts && worker.clock != kProgressEnd && worker.clock > slowest_ &&
         worker.clock - slowest_ > *staleness_;
}

std::vector<uint32_t> StalenessBound::behind(uint32_t rank) const {
  std::vector<uint32_t> behind;
  for (uint32_t other = 0; staleness_ && other < workers_.size(); ++other)
    if (workers_[other].counts && !rests_(other) && workers_[other].clock < workers_[rank].clock &&
        workers_[rank].clock - workers_[other].clock > *staleness_)
      behind.push_back(other);
  return behind;
}

}  // namespace dtf::replication
