#include "common/data/augment.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

namespace dtf::data {
namespace {

constexpr int kHeight = 5;
constexpr int kWidth = 4;

PartSpec image(DType dtype = DType::kUInt8, int64_t channels = 2) {
  return {kFeatures, dtype, Shape{kHeight, kWidth, channels}};
}

// A different value in each byte, never 0.
std::vector<uint8_t> picture() {
  std::vector<uint8_t> bytes(kHeight * kWidth * 2);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i + 1);
  return bytes;
}

std::vector<uint8_t> augmented(const cluster::AugmentSpec& spec, uint64_t epoch, uint32_t example,
                               uint64_t seed = 1) {
  const std::vector<uint8_t> from = picture();
  std::vector<uint8_t> to(from.size(), 0xEE);
  Augmenter(spec, image(), seed).apply(epoch, example, from, to);
  return to;
}

// Returns the picture moved and mirrored, pixel by pixel.
std::vector<uint8_t> movedSlowly(int down, int right, bool mirrored) {
  const std::vector<uint8_t> from = picture();
  std::vector<uint8_t> to(from.size());
  for (int y = 0; y < kHeight; ++y)
    for (int x = 0; x < kWidth; ++x)
      for (int c = 0; c < 2; ++c) {
        const int at_y = y + down;
        const int at_x = (mirrored ? kWidth - 1 - x : x) + right;
        const bool inside = at_y >= 0 && at_y < kHeight && at_x >= 0 && at_x < kWidth;
        to[(y * kWidth + x) * 2 + c] = inside ? from[(at_y * kWidth + at_x) * 2 + c] : 0;
      }
  return to;
}

TEST(Augmenter, DrawsEveryWindowAndBothSidesAndNothingElse) {
  const cluster::AugmentSpec spec{.flip_horizontal = true, .crop_padding = 2};
  std::set<std::vector<uint8_t>> expected, seen;
  for (int down = -2; down <= 2; ++down)
    for (int right = -2; right <= 2; ++right)
      for (const bool mirrored : {false, true}) expected.insert(movedSlowly(down, right, mirrored));
  for (uint32_t example = 0; example < 2000; ++example)
    seen.insert(augmented(spec, example % 3, example));
  EXPECT_EQ(seen.size(), 50u);
  EXPECT_EQ(seen, expected);
}

TEST(Augmenter, APaddingBeyondTheImageLeavesZeros) {
  const cluster::AugmentSpec spec{.flip_horizontal = true, .crop_padding = 9};
  std::set<std::vector<uint8_t>> seen;
  for (uint32_t example = 0; example < 500; ++example) seen.insert(augmented(spec, 0, example));
  EXPECT_TRUE(seen.contains(std::vector<uint8_t>(picture().size())));
  const cluster::AugmentSpec unmirrored{.flip_horizontal = false, .crop_padding = 1000};
  for (uint32_t example = 0; example < 20; ++example) augmented(unmirrored, 0, example);
}

TEST(Augmenter, WithoutSettingsNothingChanges) {
  EXPECT_EQ(augmented({}, 3, 4), picture());
}

TEST(Augmenter, WhatIsDrawnFollowsFromSeedEpochAndExample) {
  const cluster::AugmentSpec spec{.flip_horizontal = true, .crop_padding = 4};
  const auto all = [&spec](uint64_t epoch, uint64_t seed) {
    std::vector<std::vector<uint8_t>> images;
    for (uint32_t example = 0; example < 20; ++example)
      images.push_back(augmented(spec, epoch, example, seed));
    return images;
  };
  EXPECT_EQ(all(5, 1), all(5, 1));
  EXPECT_NE(all(5, 1), all(6, 1));
  EXPECT_NE(all(5, 1), all(5, 2));
}

TEST(Augmenter, MovesPixelsOfAnyType) {
  std::vector<float> from(kHeight * kWidth);
  for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<float>(i) + 0.5F;
  std::vector<float> to(from.size());
  const Augmenter augmenter({.flip_horizontal = false, .crop_padding = 1},
                            image(DType::kFloat32, 1), 1);
  const auto bytes = [](std::vector<float>& values) {
    return std::span(reinterpret_cast<uint8_t*>(values.data()), values.size() * sizeof(float));
  };
  augmenter.apply(0, 0, bytes(from), bytes(to));
  for (const float value : to)
    EXPECT_TRUE(value == 0 || std::find(from.begin(), from.end(), value) != from.end());
  EXPECT_NE(std::count_if(to.begin(), to.end(), [](float value) { return value != 0; }), 0);
}

}  // namespace
}  // namespace dtf::data
