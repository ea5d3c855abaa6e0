#include "common/train/divergence.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace dtf::train {

bool DivergenceWatch::diverged(double loss) {
  if (!std::isfinite(loss)) return true;
  if (!start_) start_ = loss;
  return std::abs(loss) > limit();
}

double DivergenceWatch::limit() const {
  if (!start_) return std::numeric_limits<double>::infinity();
  return kFactorMax * std::max(std::abs(*start_), kStartMin);
}

}  // namespace dtf::train
