// Each kind of JPEG becomes grey or coloured; files that cost too much to decode are rejected.

#include <gtest/gtest.h>

#include "tests/unit/data/decoded.h"
#include "tests/unit/data/image_files.h"

namespace dtf::data {
namespace {

// Images of one colour, of which the coding loses nearly nothing.
TEST(JpegDecoder, AJpegIsGreyColouredOrOfInks) {
  const auto near = [](const Bytes& pixels, const Bytes& colour) {
    for (size_t i = 0; i < pixels.size(); ++i)
      ASSERT_NEAR(pixels[i], colour[i % colour.size()], 2) << i;
  };
  for (const bool progressive : {false, true}) {
    near(pixelsOf(jpegOf(20, 10, 3, plain(200, {200, 100, 50}), progressive), 3), {200, 100, 50});
    near(pixelsOf(jpegOf(20, 10, 1, plain(200, {77}), progressive), 3), {77, 77, 77});
    near(pixelsOf(jpegOf(20, 10, 1, plain(200, {77}), progressive), 1), {77});
  }
  // Full ink is 0; a quarter of black leaves three quarters of the light.
  near(pixelsOf(jpegOf(20, 10, 4, plain(200, {255, 128, 0, 191})), 3), {191, 96, 0});
}

// Each scan costs a pass over the image.
TEST(JpegDecoder, AJpegOfVeryManyScansIsRefused) {
  const std::string file = jpegOf(16, 16, 1, plain(256, {9}), true);
  const size_t first = file.find("\xff\xda");
  const size_t last = file.rfind("\xff\xda");
  ASSERT_LT(first, last);
  std::string many = file.substr(0, file.size() - 2);
  for (int i = 0; i < 200; ++i) many += file.substr(last, file.size() - 2 - last);
  EXPECT_EQ(imageFailureOf(many + "\xff\xd9"),
            "a.png: damaged JPEG image: it has too many scans (101)");
}

// SOF9 in the header of a JPEG marks arithmetic coding: a few hundred bytes of it fill any image.
TEST(JpegDecoder, AnArithmeticallyCodedJpegIsRefused) {
  std::string file = jpegOf(16, 16, 1, plain(256, {9}));
  const size_t header = file.find("\xff\xc0");
  ASSERT_NE(header, std::string::npos);
  file[header + 1] = '\xc9';
  EXPECT_EQ(imageFailureOf(file).find("a.png: a JPEG image that is coded arithmetically"), 0U)
      << imageFailureOf(file);
}

}  // namespace
}  // namespace dtf::data
