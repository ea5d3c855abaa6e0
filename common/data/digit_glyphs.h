#pragma once

// How people write the ten digits: per class several variants, each a list of pen positions.
// digits.cc draws a smooth curve through them. Used by digits.cc and its test alone.

#include <cstdint>
#include <span>

namespace dtf::data {

enum class Pen : uint8_t {
  kSmooth,  // the curve goes through smoothly
  kCorner,  // the curve turns sharply
  kLift,    // the stroke ends here; the next point begins another
};

// In hundredths of the digit's height; x to the right, y downwards. Digits stand in x 20..80, y
// 0..100.
struct GlyphPoint {
  int8_t x = 0;
  int8_t y = 0;
  Pen pen = Pen::kSmooth;
};

using Glyph = std::span<const GlyphPoint>;  // the last point lifts the pen

// The variants of `digit`, 0 to 9: at least three.
std::span<const Glyph> glyphsOf(int digit);

}  // namespace dtf::data
