#include "common/arena/codecs/blocks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>
#include <span>
#include <vector>

#include "common/base/error.h"

namespace dtf::arena {
namespace {

// A shard with two variables of whole blocks and a rest, between which a small one lies. There is
// padding before each.
constexpr uint64_t kBlockElements = 3008;
const ShardRanges kBlockRanges{{{1312, 1320}}, {{0, 1300}, {1328, 3000}}};

// A cut at multiples of kCodecBlock elements of a variable changes no value that arrives.
TEST(BlockCodec, ACutVariableHasTheBlocksOfAWholeOne) {
  constexpr uint64_t kFirst = 2 * kCodecBlock, kAll = kFirst + 1400;
  std::minstd_rand random(5);
  std::vector<float> values(kAll);
  for (float& value : values) value = static_cast<float>(random() % 1000) - 500.0F;
  for (const CodecSpec& each : {CodecSpec(CodecKind::kInt8), CodecSpec(CodecKind::kTopK, 0.02)}) {
    const auto arrives = [&each](std::span<const float> part) {
      const auto codec = makeCodec(each, part.size(), {});
      std::vector<std::byte> bytes(codec->bytes());
      std::vector<float> residual(part.size()), came(part.size());
      codec->encode({part.data(), {}, residual.data()}, {0, part.size()}, bytes.data());
      codec->decode(bytes, {}, came.data());
      return came;
    };
    const std::span<const float> all(values);
    std::vector<float> parts = arrives(all.first(kFirst));
    const std::vector<float> rest = arrives(all.subspan(kFirst));
    parts.insert(parts.end(), rest.begin(), rest.end());
    EXPECT_EQ(parts, arrives(all)) << codecName(each.kind);
  }
}

// A value that is no number arrives as none, at least it alone of its block: a diverged job must
// not look sound. The residual is a number again.
TEST(BlockCodec, NoNumbersArriveAsNone) {
  for (const CodecSpec& each : {CodecSpec(CodecKind::kInt8), CodecSpec(CodecKind::kTopK, 0.02)}) {
    for (const float broken : {NAN, INFINITY, -INFINITY}) {
      std::vector<float> values(600, 1.0F), residual(600), came(600);
      values[321] = broken;
      const auto codec = makeCodec(each, values.size(), {});
      std::vector<std::byte> bytes(codec->bytes());
      codec->encode({values.data(), {}, residual.data()}, {0, values.size()}, bytes.data());
      codec->decode(bytes, {}, came.data());
      EXPECT_FALSE(std::isfinite(came[321])) << codec->name();
      EXPECT_TRUE(std::ranges::all_of(residual, [](float each) { return std::isfinite(each); }));
    }
  }
}

class ChangeCodecTest : public ::testing::TestWithParam<double> {
 protected:
  // 0: int8.
  const std::unique_ptr<const ChangeCodec> codec_ = makeChangeCodec(
      GetParam() == 0 ? CodecSpec(CodecKind::kInt8) : CodecSpec(CodecKind::kTopK, GetParam()),
      kBlockElements, kBlockRanges);

  std::vector<float> values(unsigned seed) const {
    std::minstd_rand random(seed);
    std::vector<float> values(kBlockElements);
    for (const std::vector<ElementRange>& list : {kBlockRanges.exact, kBlockRanges.slices})
      for (const ElementRange& range : list)
        for (uint64_t i = range.begin; i < range.end; ++i)
          values[i] = static_cast<float>(random() % 10'000) / 7'000;
    return values;
  }
};

TEST_P(ChangeCodecTest, BothSidesHaveTheSameBitsAndComeCloserEachTime) {
  std::vector<float> sender = values(1), receiver = sender;
  const std::vector<float> due = values(2);
  std::vector<std::byte> bytes(codec_->bytes());
  double before = 1e9;
  for (int round = 0; round < 8; ++round) {
    std::vector<float> next(kBlockElements, NAN);
    codec_->encodeChange(due.data(), sender.data(), bytes.data(), next.data());
    sender = next;
    codec_->applyChange(bytes, receiver.data(), receiver.data());
    EXPECT_TRUE(
        std::ranges::equal(std::as_bytes(std::span(sender)), std::as_bytes(std::span(receiver))));
    double distance = 0;
    for (size_t i = 0; i < due.size(); ++i) distance += std::abs(due[i] - sender[i]);
    EXPECT_LT(distance, before);
    if (distance > 0)
      before = distance;
    else
      before = 1e-9;
  }
  for (uint64_t i = 1312; i < 1320; ++i) EXPECT_EQ(receiver[i], due[i]) << "exact at once";
}

TEST_P(ChangeCodecTest, ABaseThatIsNoNumberIsLeftBehind) {
  std::vector<float> base = values(1);
  base[5] = NAN;
  base[2000] = INFINITY;
  const std::vector<float> due = values(2);
  std::vector<std::byte> bytes(codec_->bytes());
  for (int round = 0; round < 200; ++round) {
    codec_->encodeChange(due.data(), base.data(), bytes.data(), base.data());
    EXPECT_TRUE(std::ranges::all_of(base, [](float each) { return std::isfinite(each); }));
  }
  EXPECT_NEAR(base[5], due[5], 1e-5);
}

TEST_P(ChangeCodecTest, AnyBytesOfThatSizeAreAChangeAndOthersAreRefused) {
  std::minstd_rand random(3);
  std::vector<std::byte> bytes(codec_->bytes());
  for (int round = 0; round < 100; ++round) {
    for (std::byte& each : bytes) each = static_cast<std::byte>(random());
    const std::vector<float> base = values(1);
    std::vector<float> next(kBlockElements);
    codec_->applyChange(bytes, base.data(), next.data());
  }
  bytes.push_back(std::byte{0});
  std::vector<float> next(kBlockElements);
  EXPECT_THROW(codec_->applyChange(bytes, next.data(), next.data()), Error);
}

INSTANTIATE_TEST_SUITE_P(Each, ChangeCodecTest, ::testing::Values(0.0, 0.01, 0.3));

}  // namespace
}  // namespace dtf::arena
