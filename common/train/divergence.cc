#include "common/train/divergence.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "common/base/check.h"

namespace dtf::train {

bool DivergenceWatch::diverged(double loss) {
  if (!std::isfinite(loss)) return true;
  if (!start_) start_ = loss;
  return std::abs(loss) > limit();
}

double DivergenceWatch::limit() const {
  if (!start_) return std::numeric_limits<double>::infinity();
  DTF_CHECK(std::isfinite(*start_));
  return kFactorMax * std::max(std::abs(*start_), kStartMin);
}

}  // namespace dtf::train
