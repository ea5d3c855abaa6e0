#pragma once

// A 28 x 28 sheet that a round pen draws on, anti-aliased. Only IEEE operations, so that every
// machine draws the same. Used by digits.cc and its test alone.

#include <array>
#include <cstdint>
#include <span>

namespace dtf::data {

struct Point {
  float x = 0;  // pixels; the centre of the first pixel is (0.5, 0.5)
  float y = 0;
};

// Value type.
class DigitCanvas {
 public:
  static constexpr int kSide = 28;

  // Draws a stroke from `from` to `to` with a pen of `radius` pixels; its edge fades over
  // `softness` pixels. Ink of `level` (0 to 255) covers lighter ink and adds to nothing: crossing
  // strokes are no darker. Clipped at the borders.
  void line(Point from, Point to, float radius, float softness, float level);

  // Adds per pixel a value drawn from `noise` (0 to 255, one byte a pixel) times `amplitude` / 256,
  // and rounds.
  void finish(std::span<const uint8_t, kSide * kSide> noise, int amplitude,
              std::span<uint8_t, kSide * kSide> pixels) const;

 private:
  std::array<float, kSide * kSide> ink_{};
};

}  // namespace dtf::data
