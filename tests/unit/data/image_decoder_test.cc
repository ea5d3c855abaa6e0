// A file that is no image, or is damaged, cut off or too large, is rejected.

#include "common/data/image_decoder.h"

#include <gtest/gtest.h>

#include "tests/unit/data/decoded.h"
#include "tests/unit/data/image_files.h"

namespace dtf::data {
namespace {

TEST(ImageDecoder, WhatIsNoImageIsNamedByWhatItLooksLike) {
  EXPECT_EQ(imageFailureOf("GIF89a......"),
            "a.png: this looks like a GIF image; expected a PNG, JPEG, WebP or BMP image");
  EXPECT_EQ(imageFailureOf(""), "a.png: the file is empty");
  EXPECT_EQ(imageFailureOf("<html>"),
            "a.png: this looks like a web page or XML, '<html>'; expected a "
            "PNG, JPEG, WebP or BMP image");
}

// A file that is cut at any place, or has any byte changed, gives an error or an image, and nothing
// worse.
TEST(ImageDecoder, AFileThatIsCutOffIsRefusedWhereverItIs) {
  const PngKind interlaced{PNG_COLOR_TYPE_RGB, 8, true};
  for (const std::string& file :
       {pngOf(7, 5, noise(7 * 5 * 3)), pngOf(7, 5, noise(7 * 5 * 3), interlaced),
        jpegOf(17, 9, 3, noise(17 * 9 * 3)), jpegOf(17, 9, 3, noise(17 * 9 * 3), true)}) {
    const bool png = file[1] == 'P';
    // The bytes behind the last pixels may be missing.
    for (size_t bytes = 0; bytes + (png ? 24 : 16) < file.size(); ++bytes)
      EXPECT_NE(imageFailureOf(file.substr(0, bytes)), "no error")
          << bytes << " of " << file.size();
    for (size_t at = 0; at < file.size(); ++at) {
      std::string changed = file;
      changed[at] = static_cast<char>(changed[at] ^ 0x55);
      imageFailureOf(changed, 1 << 20);
    }
  }
  const std::string jpeg = jpegOf(17, 9, 3, noise(17 * 9 * 3));
  EXPECT_EQ(imageFailureOf(jpeg.substr(0, jpeg.size() / 2)),
            "a.png: damaged JPEG image: Premature end of input file");
  const std::string png = pngOf(7, 5, noise(7 * 5 * 3));
  EXPECT_EQ(imageFailureOf(png.substr(0, png.size() / 2)),
            "a.png: damaged PNG image: the file is cut off");
}

// The sizes are in the header; nothing is allocated for them.
TEST(ImageDecoder, ASizeThatTheFileCannotHoldIsRefused) {
  std::string jpeg = jpegOf(16, 16, 1, plain(256, {9}));
  const size_t frame = jpeg.find("\xff\xc0");
  ASSERT_NE(frame, std::string::npos);
  jpeg.replace(frame + 5, 4, "\x70\x00\x70\x00", 4);  // height and width
  EXPECT_NE(imageFailureOf(jpeg).find("a.png: too large: the header promises 28672 x 28672 pixels"),
            std::string::npos)
      << imageFailureOf(jpeg);
  jpeg.replace(frame + 5, 4, "\x10\x00\x10\x00", 4);
  EXPECT_NE(
      imageFailureOf(jpeg).find("a.png: cut off: the header promises 4096 x 4096 pixels, but a "
                                "file of this size can't hold more than "),
      std::string::npos)
      << imageFailureOf(jpeg);
  const std::string png = pngOf(600, 600, plain(600 * 600, {5}), {PNG_COLOR_TYPE_GRAY});
  EXPECT_EQ(imageFailureOf(png), "no error");
  EXPECT_EQ(imageFailureOf(png, 1000),
            "a.png: too large: the header promises 600 x 600 pixels, at most 32768 on a side and "
            "1000 in all are read");
}

}  // namespace
}  // namespace dtf::data
