#include "common/optimizer/gradient_clip.h"

#include <cmath>

#include "common/base/check.h"
#include "common/optimizer/gradient_math.h"

namespace dtf::optimizer {

double clipByGlobalNorm(std::span<const std::span<float>> gradients, double clip_norm) {
  DTF_CHECK(clip_norm > 0);
  double sum = 0;
  for (const std::span<float> gradient : gradients) sum += sumOfSquares(gradient);
  const double norm = std::sqrt(sum);
  if (!std::isfinite(norm) || norm <= clip_norm) return norm;
  const auto factor = static_cast<float>(clip_norm / norm);
  for (const std::span<float> gradient : gradients) scale(gradient.data(), factor, gradient.size());
  return norm;
}

}  // namespace dtf::optimizer
