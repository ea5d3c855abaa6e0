#include "common/arena/codecs/rows.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "common/arena/codecs/bfloat16.h"
#include "common/arena/codecs/float32.h"
#include "tests/unit/arena/sparse_fixture.h"

namespace dtf::arena {
namespace {

// Three dense elements and a gap, a table of 6 x 3 and one of 4 x 1.
GradientLayout tables() {
  return GradientLayout(26, {{4, 6, 3}, {22, 4, 1}});
}

// Rows 1 and 4 of the first table, and row 3 of the second; all values are exact in bfloat16.
Gradient filled() {
  return makeGradient(tables(), {1, 2, 3, 4},
                      {{{1, {10, 11, 12}}, {4, {13, 14, 15}}}, {{3, {20}}}});
}

TEST(RowsCodec, ValuesAreRunsOfTheCodecOfTheDenseElements) {
  const std::vector<uint32_t> counts = {2, 1}, none = {0, 0};
  const RowsCodec rounding(tables(), std::make_unique<BFloat16Codec>(4));
  EXPECT_EQ(rounding.bytes(counts), 8 + (8 + 12) + (4 + 4) + 4u);
  EXPECT_EQ(rounding.bytes(none), 8u);
  const RowsCodec keeping(tables(), std::make_unique<Float32Codec>(4));
  EXPECT_EQ(keeping.bytes(counts), tables().elementsOf(counts) * sizeof(float));
  EXPECT_EQ(keeping.bytes(none), 16u);
}

TEST(RowsCodec, RowsKeepTheirIds) {
  const Gradient gradient = filled();
  const RowsCodec codec(tables(), std::make_unique<BFloat16Codec>(4));
  std::vector<std::byte> bytes(codec.bytes(gradient.row_counts));
  EXPECT_EQ(codec.encode({gradient.values.data(), gradient.row_counts}, {0, gradient.values.size()},
                         bytes.data()),
            bytes.size());
  std::vector<float> decoded(codec.elements(gradient.row_counts), -1);
  codec.decode(bytes, gradient.row_counts, decoded.data());
  EXPECT_TRUE(
      std::ranges::equal(std::as_bytes(std::span(decoded)), std::as_bytes(gradient.values)));
  EXPECT_FALSE(tables().fault({decoded, nullptr, gradient.row_counts}));
}

TEST(RowsCodec, DenseElementsAreEncodedBeforeTheRowsAreThere) {
  const Gradient gradient = filled();
  const RowsCodec codec(tables(), std::make_unique<BFloat16Codec>(4));
  const CodecInput input{gradient.values.data(), gradient.row_counts};
  std::vector<std::byte> whole(codec.bytes(gradient.row_counts)), parts(whole.size());
  codec.encode(input, {0, gradient.values.size()}, whole.data());
  EXPECT_EQ(codec.encode(input, {0, 4}, parts.data()), 8u);
  EXPECT_EQ(codec.encode(input, {4, gradient.values.size()}, parts.data()), whole.size());
  EXPECT_EQ(parts, whole);
}

}  // namespace
}  // namespace dtf::arena
