#include "common/data/digit_glyphs.h"

#include <gtest/gtest.h>

namespace dtf::data {
namespace {

TEST(DigitGlyphs, EveryDigitHasVariantsOfWholeStrokes) {
  for (int digit = 0; digit < 10; ++digit) {
    ASSERT_GE(glyphsOf(digit).size(), 3u);
    for (const Glyph glyph : glyphsOf(digit)) {
      ASSERT_GE(glyph.size(), 3u) << digit;
      ASSERT_LE(glyph.size(), 24u) << digit;  // kPointsMax in digits.cc
      EXPECT_EQ(glyph.back().pen, Pen::kLift) << digit;
      EXPECT_NE(glyph.front().pen, Pen::kLift) << digit;
      for (const GlyphPoint& point : glyph) {
        EXPECT_TRUE(point.x >= 20 && point.x <= 82 && point.y >= 0 && point.y <= 100) << digit;
      }
    }
  }
}

}  // namespace
}  // namespace dtf::data
