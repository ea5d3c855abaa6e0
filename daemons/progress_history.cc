#include "daemons/progress_history.h"

namespace dtf::daemons {

void ProgressHistory::offer(const ProgressPoint& point) {
  newest_ = point;
  has_newest_ = offered_++ % stride_ != 0;
  if (has_newest_) return;
  if (points_.size() == kPointsMax) {
    for (size_t i = 0; i < kPointsMax / 2; ++i) points_[i] = points_[2 * i];
    points_.resize(kPointsMax / 2);
    stride_ *= 2;
  }
  points_.push_back(point);
}

std::vector<ProgressPoint> ProgressHistory::points() const {
  std::vector<ProgressPoint> all = points_;
  if (has_newest_) all.push_back(newest_);
  return all;
}

}  // namespace dtf::daemons
