#include "common/train/batch_images.h"

#include <gtest/gtest.h>

#include <limits>
#include <numeric>
#include <vector>

namespace dtf::train {
namespace {

using Bytes = std::vector<uint8_t>;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST(BatchImages, TheLargestNumberIsWhite) {
  const std::vector<float> numbers = {0, 1, 2, 4};
  EXPECT_EQ(pixelsOf(numbers), (Bytes{0, 63, 127, 255}));
}

TEST(BatchImages, WhereNumbersAreBelowZeroZeroIsGrey) {
  EXPECT_EQ(pixelsOf(std::vector<float>{-1, 0, 1}), (Bytes{0, 127, 254}));
  EXPECT_EQ(pixelsOf(std::vector<float>{-1, 0, 4}), (Bytes{95, 127, 255}))
      << "the largest number decides";
  EXPECT_EQ(pixelsOf(std::vector<float>{-2, -1, 0}), (Bytes{0, 63, 127})) << "none is above 0";
}

TEST(BatchImages, NumbersWithoutARangeAreShownAllTheSame) {
  EXPECT_EQ(pixelsOf(std::vector<float>{0, 0}), (Bytes{0, 0}));
  EXPECT_EQ(pixelsOf(std::vector<float>{}), Bytes());
  EXPECT_EQ(pixelsOf(std::vector<float>{kNan, 2, kInfinity, -kInfinity, 0}),
            (Bytes{0, 255, 0, 0, 0}));
  EXPECT_EQ(pixelsOf(std::vector<float>{0, 1e-45F}).at(0), 0) << "255 / 1e-45 is infinite";
}

template <class T>
Tensor counted(DType dtype, const Shape& shape) {
  Tensor tensor(dtype, shape);
  std::iota(tensor.as<T>().begin(), tensor.as<T>().end(), T{1});
  return tensor;
}

TEST(BatchImages, TheFirstImagesOfABatchAreTaken) {
  const Tensor features = counted<uint8_t>(DType::kUInt8, Shape{3, 2, 1, 3});
  summary::StepSummary summary;
  EXPECT_EQ(addImages(features, 2, summary), 0u);
  ASSERT_EQ(summary.images.size(), 2u);
  const summary::StepSummary::Image& second = summary.images[1];
  EXPECT_EQ(second.tag, "features/image/1");
  EXPECT_EQ(second.height, 2);
  EXPECT_EQ(second.width, 1);
  EXPECT_EQ(second.channels, 3);
  EXPECT_EQ(second.pixels, (Bytes{7, 8, 9, 10, 11, 12})) << "bytes are shown as they are";
  EXPECT_EQ(addImages(features, 100, summary), 0u) << "a batch has no more than it has";
  EXPECT_EQ(summary.images.size(), 5u);
}

TEST(BatchImages, NumbersAreScaledImageByImage) {
  for (const Tensor& features : {counted<float>(DType::kFloat32, Shape{2, 1, 2}),
                                 counted<int32_t>(DType::kInt32, Shape{2, 1, 2})}) {
    summary::StepSummary summary;
    addImages(features, 2, summary);
    ASSERT_EQ(summary.images.size(), 2u);
    EXPECT_EQ(summary.images[0].channels, 1);
    EXPECT_EQ(summary.images[0].pixels, (Bytes{127, 255}));
    EXPECT_EQ(summary.images[1].pixels, (Bytes{191, 255}));
  }
}

TEST(BatchImages, WhatFindsNoRoomIsLeftOutAndCounted) {
  const Tensor features = counted<uint8_t>(DType::kUInt8, Shape{4, 2, 2});
  for (const auto& [bytes_max, shown] : {std::pair{16U, 4U}, {15U, 3U}, {4U, 1U}, {3U, 0U}}) {
    summary::StepSummary summary;
    EXPECT_EQ(addImages(features, 4, summary, bytes_max), 4 - shown);
    EXPECT_EQ(summary.images.size(), shown) << bytes_max;
  }
}

}  // namespace
}  // namespace dtf::train
