#include "common/arena/encoded_gradient.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "common/arena/shard_codecs.h"
#include "tests/unit/arena/sparse_fixture.h"

namespace dtf::arena {
namespace {

// Three dense elements and a gap, a table of 6 x 3.
GradientLayout table() {
  return GradientLayout(22, {{4, 6, 3}});
}

TEST(EncodedGradient, WithoutRowsOnlyItsDenseElementsAreSent) {
  const ShardCodecs codecs(CodecKind::kBFloat16, 22, table(), {});
  EncodedGradient encoded(codecs.gradient());
  encoded.write(makeGradient(table(), {1, 2, 3, 4}, {{{1, {10, 11, 12}}}}));
  EXPECT_EQ(encoded.bytes().size(), 8 + (4 + 8) + 4u);
  encoded.write(makeGradient(table(), {1, 2, 3, 4}, {{}}));
  ASSERT_EQ(encoded.bytes().size(), 8u);
  std::vector<float> decoded(4);
  codecs.gradient().decode(encoded.bytes(), encoded.gradient().row_counts, decoded.data());
  EXPECT_EQ(decoded, (std::vector<float>{1, 2, 3, 4}));
}

TEST(EncodedGradient, IsSentFromWhereItIsIfTheCodecIsTheIdentity) {
  const ShardCodecs codecs(CodecKind::kFloat32, 22, table(), {});
  EncodedGradient encoded(codecs.gradient());
  const Gradient gradient = makeGradient(table(), {1, 2, 3, 4}, {{{1, {10, 11, 12}}}});
  encoded.write(gradient);
  EXPECT_EQ(encoded.bytes().data(), std::as_bytes(gradient.values).data());
  EXPECT_EQ(encoded.bytes().size(), gradient.values.size_bytes());
  EXPECT_EQ(encoded.owner(), gradient.owner);
}

// 1 / 3, 1 / 4 and so on: few are exact in bfloat16.
std::vector<float> fractions(size_t n) {
  std::vector<float> values(n);
  for (size_t i = 0; i < n; ++i) values[i] = 1.0F / static_cast<float>(i + 3);
  return values;
}

// Ranges of odd sizes, one of them at the end.
const std::vector<ElementRange> kKeptRanges = {{5, 8}, {9, 10}, {1'000, 1'002}};

TEST(EncodedGradient, WrittenBitByBitItIsTheSame) {
  const std::vector<float> values = fractions(1'002);
  for (const CodecKind kind : {CodecKind::kFloat32, CodecKind::kBFloat16}) {
    const auto codec = makeCodec(kind, values.size(), kKeptRanges);
    EncodedGradient whole(*codec), pieces(*codec);
    whole.write({values, nullptr});
    for (int round = 0; round < 2; ++round) {
      pieces.begin({values, nullptr});
      const uint64_t bytes = pieces.bytes().size();
      ASSERT_EQ(bytes, whole.bytes().size());
      uint64_t final_bytes = 0;
      for (uint64_t end = 0; end < values.size(); end += 1 + end % 3) {
        const uint64_t now = pieces.writeUpTo(end);
        EXPECT_GE(now, final_bytes);
        final_bytes = now;
        EXPECT_EQ(pieces.writeUpTo(end), now) << "said again";
        EXPECT_EQ(std::memcmp(pieces.bytes().data(), whole.bytes().data(), now), 0) << end;
      }
      EXPECT_EQ(pieces.writeUpTo(values.size()), bytes);
      EXPECT_EQ(std::memcmp(pieces.bytes().data(), whole.bytes().data(), bytes), 0);
    }
  }
}

TEST(EncodedGradient, AnEmptyShardHasNothingToSend) {
  for (const CodecKind kind : {CodecKind::kFloat32, CodecKind::kBFloat16}) {
    const auto codec = makeCodec(kind, 0, {});
    EncodedGradient encoded(*codec);
    encoded.write({});
    EXPECT_TRUE(encoded.bytes().empty());
    encoded.begin({});
    EXPECT_EQ(encoded.writeUpTo(0), 0u);
  }
}

}  // namespace
}  // namespace dtf::arena
