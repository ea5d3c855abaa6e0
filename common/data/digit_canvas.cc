#include "common/data/digit_canvas.h"

#include <algorithm>
#include <cmath>

namespace dtf::data {

namespace {

// [first, last) pixels of a row or column that reach from `low` to `high`.
struct Range {
  int first = 0;
  int last = 0;
};

Range pixelRange(float low, float high) {
  constexpr auto kEnd = static_cast<float>(DigitCanvas::kSide);
  return {static_cast<int>(std::clamp(low, 0.0F, kEnd)),
          static_cast<int>(std::clamp(high + 1.0F, 0.0F, kEnd))};
}

}  // namespace

void DigitCanvas::line(Point from, Point to, float radius, float softness, float level) {
  const float reach = radius + 0.5F * softness;
  const Range rows = pixelRange(std::min(from.y, to.y) - reach, std::max(from.y, to.y) + reach);
  const Range columns = pixelRange(std::min(from.x, to.x) - reach, std::max(from.x, to.x) + reach);
  const float dx = to.x - from.x;
  const float dy = to.y - from.y;
  const float length2 = dx * dx + dy * dy;
  const float inverse = length2 > 0 ? 1.0F / length2 : 0.0F;
  const float slope = level / softness;
  for (int row = rows.first; row < rows.last; ++row) {
    const float py = static_cast<float>(row) + 0.5F - from.y;
    for (int column = columns.first; column < columns.last; ++column) {
      const float px = static_cast<float>(column) + 0.5F - from.x;
      const float along = std::clamp((px * dx + py * dy) * inverse, 0.0F, 1.0F);
      const float ex = px - along * dx;
      const float ey = py - along * dy;
      const float value = std::min(slope * (reach - std::sqrt(ex * ex + ey * ey)), level);
      float& ink = ink_[static_cast<size_t>(row) * kSide + static_cast<size_t>(column)];
      ink = std::max(ink, value);
    }
  }
}

void DigitCanvas::finish(std::span<const uint8_t, kSide * kSide> noise, int amplitude,
                         std::span<uint8_t, kSide * kSide> pixels) const {
  for (size_t i = 0; i < pixels.size(); ++i) {
    const int added = noise[i] * amplitude / 256;
    const int ink = static_cast<int>(ink_[i] + 0.5F);  // NOLINT: the digits' bytes are defined so
    pixels[i] = static_cast<uint8_t>(std::min(ink + added, 255));
  }
}

}  // namespace dtf::data
