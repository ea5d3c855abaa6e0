// The expected figures are from Pillow 13: image.resize(size, Image.BILINEAR).

#include "common/data/image_resize.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "tests/unit/data/image_files.h"

namespace dtf::data {
namespace {

using Resize = cluster::ImagesSpec::Resize;
using Bytes = std::vector<uint8_t>;

Image imageOf(int64_t height, int64_t width, int64_t channels, const Bytes& pixels) {
  Image image{height, width, channels, ByteBlock(pixels.size())};
  std::memcpy(image.pixels.data(), pixels.data(), pixels.size());
  return image;
}

Bytes resized(const Image& image, int64_t height, int64_t width, Resize how = Resize::kStretch) {
  Bytes to(static_cast<size_t>(height * width * image.channels));
  resizeImage(image, how, height, width, to);
  return to;
}

TEST(ImageResize, SmallerIsTheMeanOfWhatIsCovered) {
  const Bytes small = {138, 89,  146, 155, 171, 159, 136, 65,  194, 140, 106, 130,
                       116, 88,  75,  173, 113, 145, 100, 147, 154, 133, 120, 123,
                       96,  174, 65,  190, 158, 90,  171, 123, 125, 109, 138, 128};
  EXPECT_EQ(resized(imageOf(5, 7, 3, noise(5 * 7 * 3)), 3, 4), small);
}

TEST(ImageResize, LargerIsBetweenTheNeighbours) {
  const Bytes large = resized(imageOf(5, 7, 3, noise(5 * 7 * 3)), 6, 9);
  const Bytes first_row = {198, 126, 129, 137, 92,  210, 160, 153, 177, 230, 237, 115, 246, 189,
                           223, 151, 64,  225, 130, 13,  206, 106, 75,  156, 49,  222, 86};
  const Bytes last_row = {32,  251, 143, 129, 142, 51, 162, 136, 7,   161, 172, 53,  220, 83,
                          205, 181, 64,  102, 161, 72, 149, 129, 107, 143, 82,  157, 6};
  EXPECT_EQ(Bytes(large.begin(), large.begin() + 27), first_row);
  EXPECT_EQ(Bytes(large.end() - 27, large.end()), last_row);
}

TEST(ImageResize, OneSideMayGrowWhileTheOtherShrinks) {
  const Bytes grey = {148, 105, 224, 210, 79,  63,  155, 51,  106, 142, 97, 51,
                      159, 109, 59,  122, 80,  191, 93,  173, 68,  163, 83, 205,
                      214, 176, 107, 171, 173, 105, 160, 138, 94,  118, 117};
  const Bytes other = {146, 168, 99,  116, 130, 110, 93,  111, 118, 91, 137,
                       118, 125, 174, 137, 139, 164, 131, 141, 130, 113};
  EXPECT_EQ(resized(imageOf(5, 7, 1, grey), 7, 3), other);
}

TEST(ImageResize, TheSameSizeIsTheSameImage) {
  const Bytes pixels = noise(9 * 4 * 3);
  EXPECT_EQ(resized(imageOf(9, 4, 3, pixels), 9, 4), pixels);
  EXPECT_EQ(resized(imageOf(9, 4, 3, pixels), 9, 4, Resize::kCrop), pixels);
}

// 2 x 6 to 2 x 2: the two columns in the middle. 6 x 2 likewise.
TEST(ImageResize, ACropIsTheMiddle) {
  EXPECT_EQ(
      resized(imageOf(2, 6, 1, {0, 1, 2, 3, 4, 5, 10, 11, 12, 13, 14, 15}), 2, 2, Resize::kCrop),
      (Bytes{2, 3, 12, 13}));
  EXPECT_EQ(resized(imageOf(6, 2, 1, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}), 2, 2, Resize::kCrop),
            (Bytes{4, 5, 6, 7}));
  // The crop of 1 x 5 is a single pixel.
  EXPECT_EQ(resized(imageOf(1, 5, 1, {0, 1, 2, 3, 4}), 3, 3, Resize::kCrop), Bytes(9, 2));
}

TEST(ImageResize, AnExtremeImageKeepsItsRange) {
  const Bytes white(40000, 255);
  const Bytes one = resized(imageOf(1, 40000, 1, white), 1, 1);
  EXPECT_EQ(one, Bytes{255});
  const Bytes many = resized(imageOf(1, 1, 1, {255}), 50, 70);
  EXPECT_TRUE(std::all_of(many.begin(), many.end(), [](uint8_t pixel) { return pixel == 255; }));
}

}  // namespace
}  // namespace dtf::data
