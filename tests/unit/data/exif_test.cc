// An image is shown as the orientation in its EXIF metadata says, wherever the file has them.

#include "common/data/exif.h"

#include <gtest/gtest.h>

#include <cstring>

#include "tests/unit/data/bmp_files.h"
#include "tests/unit/data/decoded.h"
#include "tests/unit/data/exif_files.h"
#include "tests/unit/data/image_files.h"
#include "tests/unit/data/webp_files.h"

namespace dtf::data {
namespace {

Orientation orientationIn(const std::string& exif) {
  return exifOrientation(bytesOf(exif));
}

TEST(Exif, TheOrientationIsReadInEitherByteOrder) {
  for (uint32_t orientation = 1; orientation <= 8; ++orientation)
    for (const bool big_endian : {false, true})
      EXPECT_EQ(static_cast<uint32_t>(orientationIn(exifOf(orientation, big_endian))), orientation);
}

TEST(Exif, MetadataThatCanNotBeReadSayNothing) {
  const std::string good = exifOf(6);
  for (size_t bytes = 0; bytes < good.size(); ++bytes) {
    const Orientation read = orientationIn(good.substr(0, bytes));
    EXPECT_TRUE(read == Orientation::kUpright || bytes >= good.size() - 6) << bytes;
  }
  for (const std::string& exif : {
           exifOf(0), exifOf(9), exifOf(6, false, 4), std::string("XX") + good.substr(2),
           good.substr(0, 4) + "\xff\xff\xff\xff" + good.substr(8),  // the place of entries
           good.substr(0, 8) + "\xff\xff" + good.substr(10, 12) + "\x12\x01"  // 65535 entries
       })
    EXPECT_EQ(orientationIn(exif), Orientation::kUpright);
}

// Of the picture 1 2 3 / 4 5 6.
TEST(Exif, EachOrientationTurnsOrMirrors) {
  const std::pair<Orientation, Bytes> all[] = {
      {Orientation::kUpright, {1, 2, 3, 4, 5, 6}},
      {Orientation::kMirrored, {3, 2, 1, 6, 5, 4}},
      {Orientation::kUpsideDown, {6, 5, 4, 3, 2, 1}},
      {Orientation::kMirroredUpsideDown, {4, 5, 6, 1, 2, 3}},
      {Orientation::kTransposed, {1, 4, 2, 5, 3, 6}},
      {Orientation::kTurnedRight, {4, 1, 5, 2, 6, 3}},
      {Orientation::kTransversed, {6, 3, 5, 2, 4, 1}},
      {Orientation::kTurnedLeft, {3, 6, 2, 5, 1, 4}}};
  for (const int64_t channels : {1, 3}) {
    for (const auto& [orientation, shown] : all) {
      Image image{2, 3, channels, ByteBlock(static_cast<size_t>(6 * channels))};
      for (int64_t i = 0; i < 6 * channels; ++i)
        image.pixels.data()[i] = static_cast<uint8_t>(i / channels + 1);
      const Image turned = turnedUpright(std::move(image), orientation);
      const bool on_its_side = orientation >= Orientation::kTransposed;
      EXPECT_EQ(turned.height, on_its_side ? 3 : 2);
      EXPECT_EQ(turned.width, on_its_side ? 2 : 3);
      for (int64_t i = 0; i < 6 * channels; ++i)
        EXPECT_EQ(turned.pixels.data()[i], shown[static_cast<size_t>(i / channels)])
            << static_cast<int>(orientation) << " " << i;
    }
  }
}

TEST(Exif, EachKindOfFileIsShownUpright) {
  const Bytes pixels = {1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4, 5, 5, 5, 6, 6, 6};
  const Bytes turned = {4, 1, 5, 2, 6, 3};
  EXPECT_EQ(pixelsOf(pngWith(pngOf(3, 2, pixels), exifOf(6)), 1), turned);
  const std::string webp = webpOf(3, 2, pixels);
  for (const std::string& exif : {exifOf(6), withExif(exifOf(6))})
    EXPECT_EQ(pixelsOf(webpWith(webp, 3, 2, 8, exifChunk(exif)), 1), turned);
  // Of one colour on the left, and another on the right.
  Bytes halves = plain(size_t{16} * 16, {0});
  for (size_t row = 0; row < 16; ++row)
    std::fill_n(halves.begin() + static_cast<int>(row * 16 + 8), 8, 200);
  const std::string jpeg = jpegOf(16, 16, 1, halves);
  for (const std::string& file :
       {jpegWith(jpeg, exifOf(6)), jpegWith(jpeg, exifOf(6, true)),
        // Another program's segment with the same marker, and bytes that fill.
        jpeg.substr(0, 2) + std::string("\xff\xe1\x00\x06http\xff", 9) +
            jpegWith(jpeg, exifOf(6)).substr(2)}) {
    const Bytes shown = pixelsOf(file, 1);
    EXPECT_NEAR(shown[0], 0, 3);
    EXPECT_NEAR(shown[15], 0, 3);
    EXPECT_NEAR(shown[15 * 16], 200, 3);
  }
  EXPECT_NEAR(pixelsOf(jpeg, 1)[15], 200, 3);
}

TEST(Exif, AFileWithoutMetadataIsUpright) {
  const auto of = [](const std::string& file) {
    return orientationOf(bytesOf(file), imageKind(bytesOf(file)));
  };
  for (const std::string& file :
       {pngOf(2, 2, plain(4, {1, 2, 3})), jpegOf(2, 2, 3, plain(4, {1, 2, 3})),
        webpOf(2, 2, plain(4, {1, 2, 3})), bmpOf(1, 1, std::string(4, '\1'))})
    for (size_t bytes = 18; bytes <= file.size(); ++bytes)
      EXPECT_EQ(of(file.substr(0, bytes)), Orientation::kUpright) << bytes;
}

}  // namespace
}  // namespace dtf::data
