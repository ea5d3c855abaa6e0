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
const ShardRanges kKeptRanges{{{5, 8}, {9, 10}, {3'000, 3'002}}, {{0, 5}, {8, 9}, {10, 3'000}}};

const std::vector<CodecSpec> kEachCodec = {
    CodecKind::kFloat32, CodecKind::kBFloat16, CodecKind::kInt8, {CodecKind::kTopK, 0.01}};

TEST(EncodedGradient, WrittenBitByBitItIsTheSame) {
  const std::vector<float> values = fractions(3'002);
  for (const CodecSpec& each : kEachCodec) {
    const auto codec = makeCodec(each, values.size(), kKeptRanges);
    EncodedGradient whole(*codec), pieces(*codec);
    for (int round = 0; round < 2; ++round) {
      whole.write({values, nullptr});
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
  for (const CodecSpec& each : kEachCodec) {
    const auto codec = makeCodec(each, 0, {});
    EncodedGradient encoded(*codec);
    encoded.write({});
    EXPECT_TRUE(encoded.bytes().empty());
    encoded.begin({});
    EXPECT_EQ(encoded.writeUpTo(0), 0u);
  }
}

// Each step sends at most what is due, and the steps together send what the gradients were.
TEST(EncodedGradient, ThatLosesHasItsResidualAddedToTheNext) {
  const std::vector<float> values = fractions(2'048);
  for (const CodecSpec& each : {CodecSpec(CodecKind::kInt8), CodecSpec(CodecKind::kTopK, 0.1)}) {
    const auto codec = makeCodec(each, values.size(), {});
    EncodedGradient encoded(*codec);
    constexpr int kSteps = 40;
    std::vector<double> sum(values.size());
    for (int step = 0; step < kSteps; ++step) {
      encoded.write({values, nullptr});
      std::vector<float> came(values.size());
      codec->decode(encoded.bytes(), {}, came.data());
      for (size_t i = 0; i < came.size(); ++i) sum[i] += came[i];
    }
    for (size_t i = 0; i < values.size(); ++i)
      EXPECT_NEAR(sum[i], kSteps * values[i], 0.1) << codec->name() << " " << i;
  }
}

TEST(EncodedGradient, AResidualEndsWhenTheJobGoesBack) {
  const std::vector<float> values = fractions(2'048);
  const auto codec = makeCodec({CodecKind::kTopK, 0.01}, values.size(), {});
  EncodedGradient encoded(*codec), anew(*codec);
  encoded.follow(1);
  encoded.write({values, nullptr});
  encoded.follow(2);
  encoded.write({values, nullptr});
  anew.write({values, nullptr});
  const auto bytesOf = [](const EncodedGradient& of) {
    return std::vector<std::byte>(of.bytes().begin(), of.bytes().end());
  };
  EXPECT_EQ(bytesOf(encoded), bytesOf(anew));
  encoded.follow(2);
  encoded.write({values, nullptr});
  EXPECT_NE(bytesOf(encoded), bytesOf(anew)) << "the residual of the step before";
}

}  // namespace
}  // namespace dtf::arena
