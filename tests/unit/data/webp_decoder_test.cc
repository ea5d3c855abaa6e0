// WebP becomes grey or coloured; files that cost too much to decode are rejected.

#include <gtest/gtest.h>

#include "tests/unit/data/decoded.h"
#include "tests/unit/data/image_files.h"
#include "tests/unit/data/webp_files.h"

namespace dtf::data {
namespace {

TEST(WebpDecoder, ALosslessImageHasItsPixels) {
  const Bytes pixels = noise(size_t{7} * 5 * 3);
  EXPECT_EQ(pixelsOf(webpOf(7, 5, pixels), 3), pixels);
  const Image image = decodeImage(bytesOf(webpOf(7, 5, pixels)), "a.webp", 1);
  EXPECT_EQ(image.height, 5);
  EXPECT_EQ(image.width, 7);
}

// Images of one colour, of which the coding loses nearly nothing.
TEST(WebpDecoder, ALossyImageHasNearlyItsPixels) {
  const Bytes pixels = pixelsOf(webpOf(20, 10, plain(200, {200, 100, 50}), 90), 3);
  for (size_t i = 0; i < pixels.size(); ++i)
    ASSERT_NEAR(pixels[i], (Bytes{200, 100, 50})[i % 3], 3) << i;
}

TEST(WebpDecoder, AFileThatIsCutOffIsRefusedWhereverItIs) {
  for (const float quality : {-1.0F, 80.0F}) {
    const std::string file = webpOf(17, 9, noise(17 * 9 * 3), quality);
    for (size_t bytes = 0; bytes < file.size(); ++bytes)
      EXPECT_NE(imageFailureOf(file.substr(0, bytes)), "no error") << bytes;
    EXPECT_EQ(imageFailureOf(file.substr(0, file.size() / 2)),
              "a.png: damaged WebP image: the file is cut off");
    for (size_t at = 0; at < file.size(); ++at) {
      std::string changed = file;
      changed[at] = static_cast<char>(changed[at] ^ 0x55);
      imageFailureOf(changed, 1 << 20);
    }
  }
}

// A plain colour takes no bits: the file stays at 40 bytes.
TEST(WebpDecoder, AHugeSizeOfFewBytesIsRefused) {
  std::string file = webpOf(8, 8, plain(64, {1, 2, 3}));
  ASSERT_EQ(file.substr(12, 4), "VP8L");
  file.replace(21, 3, "\xff\xff\xff");  // 14 bits each of width and height, less one
  file[24] = static_cast<char>((file[24] & 0xf0) | 0x0f);
  EXPECT_EQ(imageFailureOf(file).find("a.png: too large: the header promises 16384 x 16384 pixels"),
            0u)
      << imageFailureOf(file);
  file.replace(21, 4, std::string("\xa0\x0f\xe8\x03", 4));  // 4001 x 4001
  EXPECT_EQ(
      imageFailureOf(file).find("a.png: too large: the header promises 4001 x 4001 pixels, at "
                                "most 4194304 are read from"),
      0u)
      << imageFailureOf(file);
  EXPECT_EQ(imageFailureOf(webpOf(600, 600, plain(600 * 600, {5, 5, 5})), 1000)
                .find("a.png: too large: the header promises 600 x 600 pixels"),
            0u);
}

TEST(WebpDecoder, AnAnimationIsRefused) {
  const std::string file = webpOf(8, 8, plain(64, {1, 2, 3}));
  EXPECT_EQ(imageFailureOf(webpWith(file, 8, 8, 2, "")),
            "a.png: an animated WebP image: save one of its pictures alone");
}

}  // namespace
}  // namespace dtf::data
