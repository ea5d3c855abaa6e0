#include "common/data/digit_canvas.h"

#include <gtest/gtest.h>

namespace dtf::data {
namespace {

constexpr size_t kPixels = DigitCanvas::kSide * DigitCanvas::kSide;

std::array<uint8_t, kPixels> developed(const DigitCanvas& canvas, int amplitude = 0) {
  std::array<uint8_t, kPixels> noise;
  noise.fill(128);
  std::array<uint8_t, kPixels> pixels;
  canvas.finish(noise, amplitude, pixels);
  return pixels;
}

uint8_t at(const std::array<uint8_t, kPixels>& pixels, int x, int y) {
  return pixels[static_cast<size_t>(y * DigitCanvas::kSide + x)];
}

TEST(DigitCanvas, DrawsAnAntiAliasedLine) {
  DigitCanvas canvas;
  canvas.line({5.5F, 10.5F}, {20.5F, 10.5F}, 1.0F, 1.0F, 200);
  const auto pixels = developed(canvas);
  EXPECT_EQ(at(pixels, 12, 10), 200);
  EXPECT_EQ(at(pixels, 12, 11),
            100);  // one pixel off the middle of a pen of radius 1: half covered
  EXPECT_EQ(at(pixels, 12, 12), 0);
  EXPECT_EQ(at(pixels, 3, 10), 0);
}

TEST(DigitCanvas, CrossingStrokesAreNoDarker) {
  DigitCanvas canvas;
  canvas.line({5, 14}, {23, 14}, 1.5F, 1.0F, 180);
  canvas.line({14, 5}, {14, 23}, 1.5F, 1.0F, 180);
  EXPECT_EQ(at(developed(canvas), 14, 14), 180);
}

TEST(DigitCanvas, ClipsWhatLiesOutside) {
  DigitCanvas canvas;
  canvas.line({-1000, -1000}, {1000, 1000}, 1.0F, 1.0F, 255);
  canvas.line({-50, 3}, {-40, 3}, 2.0F, 1.0F, 255);
  canvas.line({1e30F, 3}, {40, 1e30F}, 2.0F, 1.0F, 255);
  const auto pixels = developed(canvas);
  EXPECT_EQ(at(pixels, 9, 9), 255);
  EXPECT_EQ(at(pixels, 0, 20), 0);
}

TEST(DigitCanvas, AddsNoiseUpToWhite) {
  DigitCanvas canvas;
  canvas.line({5, 14}, {23, 14}, 1.5F, 1.0F, 250);
  const auto pixels = developed(canvas, 40);
  EXPECT_EQ(at(pixels, 14, 14), 255);
  EXPECT_EQ(at(pixels, 14, 2), 20);
}

}  // namespace
}  // namespace dtf::data
