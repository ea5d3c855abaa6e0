// One suite for every codec: a codec that is added joins instances().

#include "common/arena/codec.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
#include <ostream>
#include <random>
#include <string>
#include <vector>

#include "common/arena/shard_codecs.h"
#include "common/base/error.h"
#include "tests/unit/arena/sparse_fixture.h"

namespace dtf::arena {
namespace {

constexpr uint64_t kDense = 48, kAll = 128;
const ShardRanges kStatistics{{{5, 8}, {9, 10}, {46, 48}}, {{0, 5}, {8, 9}, {10, 46}}};
// A shard with two variables of whole blocks and a rest, between which a small one lies. There is
// padding before each.
constexpr uint64_t kBlocks = 3008;
const ShardRanges kVariables{{{1312, 1320}}, {{0, 1300}, {1328, 3000}}};
const std::vector<ElementRange> kPadding = {{1300, 1312}, {1320, 1328}, {3000, kBlocks}};

GradientLayout tablesOfCodecs() {
  return GradientLayout(kAll, {{kDense, 10, 3}, {kDense + 32, 4, 7}});
}

struct Instance {
  std::string name;
  std::function<std::unique_ptr<const Codec>()> make;
  std::vector<uint32_t> counts{};
  float error = 0;  // of a value, relative; 0: none, to the bit
};

std::ostream& operator<<(std::ostream& out, const Instance& instance) {
  return out << instance.name;
}

std::unique_ptr<const Codec> rowsOf(const CodecSpec& codec, const GradientLayout& layout) {
  return std::make_unique<RowsCodec>(
      layout, makeCodec(codec, layout.denseElements(),
                        layout.denseElements() > 0 ? kStatistics : ShardRanges{}));
}

std::vector<Instance> instances() {
  constexpr CodecKind kWide = CodecKind::kFloat32, kRounding = CodecKind::kBFloat16;
  const CodecSpec eight(CodecKind::kInt8), hundredth(CodecKind::kTopK, 0.01),
      half(CodecKind::kTopK, 0.5);
  const auto dense = [](CodecSpec codec, uint64_t elements, ShardRanges ranges) {
    return [=]() -> std::unique_ptr<const Codec> { return makeCodec(codec, elements, ranges); };
  };
  const auto rows = [](CodecSpec codec) { return [=] { return rowsOf(codec, tablesOfCodecs()); }; };
  const auto alone = [](CodecKind kind) {
    return [=] { return rowsOf(kind, tablesOfCodecs().rowsAlone()); };
  };
  return {{"Float32", dense(kWide, kDense, {})},
          {"BFloat16", dense(kRounding, kDense, {}), {}, 0x1p-8F},
          {"BFloat16AndStatistics", dense(kRounding, kDense, kStatistics), {}, 0x1p-8F},
          {"Empty", dense(kRounding, 0, {})},
          {"RowsOfFloat32", rows(kWide), {3, 1}},
          {"RowsOfBFloat16", rows(kRounding), {3, 1}, 0x1p-8F},
          {"NoRows", rows(kRounding), {0, 0}, 0x1p-8F},
          {"AllRows", rows(kRounding), {10, 4}, 0x1p-8F},
          {"RowsAlone", alone(kRounding), {0, 3}, 0x1p-8F},
          {"Int8", dense(eight, kDense, {})},
          {"Int8AndStatistics", dense(eight, kDense, kStatistics)},
          {"Int8OfVariables", dense(eight, kBlocks, kVariables)},
          {"RowsOfInt8", rows(eight), {3, 1}},
          {"TopK", dense(hundredth, kDense, {})},
          {"TopKOfVariables", dense(hundredth, kBlocks, kVariables)},
          {"HalfOfVariables", dense(half, kBlocks, kVariables)},
          {"RowsOfTopK", rows(hundredth), {0, 4}}};
}

class CodecTest : public ::testing::TestWithParam<Instance> {
 protected:
  const std::vector<uint32_t>& counts() const { return GetParam().counts; }
  uint64_t bytes() const { return codec_->bytes(counts()); }

  // Eighths, so that sums are exact; rows have ids.
  std::vector<float> values(unsigned seed) const {
    std::minstd_rand random(seed);
    std::vector<float> values(codec_->elements(counts()));
    for (float& value : values)
      value = static_cast<float>(static_cast<int>(random() % 1601) - 800) / 8;
    if (values.size() == kBlocks)
      for (const ElementRange& each : kPadding)
        std::fill_n(values.begin() + static_cast<std::ptrdiff_t>(each.begin), each.end - each.begin,
                    0.0F);
    const auto* rows = dynamic_cast<const RowsCodec*>(codec_.get());
    if (rows == nullptr) return values;
    for (size_t i = 0; i < counts().size(); ++i)
      for (uint32_t row = 0; row < counts()[i]; ++row)
        std::memcpy(&values[rows->layout().rowsAt(counts(), i) + row], &row, sizeof(row));
    const uint64_t end = rows->layout().rowsAt(counts(), counts().size());
    std::fill(values.begin() + static_cast<std::ptrdiff_t>(end), values.end(), 0.0F);
    return values;
  }
  std::vector<std::byte> encoded(const std::vector<float>& values, std::vector<float>& residual,
                                 std::byte before = std::byte{0xa5}) const {
    std::vector<std::byte> to(bytes(), before);
    EXPECT_EQ(
        codec_->encode({values.data(), counts(), residual.data()}, {0, values.size()}, to.data()),
        to.size());
    return to;
  }
  std::vector<float> decoded(const std::vector<std::byte>& from) const {
    std::vector<float> to(codec_->elements(counts()), NAN);
    codec_->decode(from, counts(), to.data());
    return to;
  }

  const std::unique_ptr<const Codec> codec_ = GetParam().make();
};

TEST_P(CodecTest, OfValuesNothingIsLostButWhatItSays) {
  std::vector<float> residual(codec_->elements(counts()));
  for (unsigned seed = 1; seed < 6; ++seed) {
    const std::vector<float> due = values(seed), before = residual;
    const std::vector<float> came = decoded(encoded(due, residual));
    ASSERT_EQ(came.size(), due.size());
    for (size_t i = 0; i < due.size(); ++i) {
      if (GetParam().error == 0) {
        EXPECT_EQ(std::bit_cast<uint32_t>(came[i] + residual[i]),
                  std::bit_cast<uint32_t>(due[i] + before[i]))
            << i;
      } else {
        EXPECT_LE(std::abs(came[i] - due[i]), GetParam().error * std::abs(due[i])) << i;
      }
    }
    const std::vector<float> none(residual.size());
    EXPECT_TRUE(codec_->hasState() || residual == none) << "left alone";
  }
}

TEST_P(CodecTest, WhatItHasLostOnceItLosesNoMore) {
  if (codec_->hasState()) GTEST_SKIP() << "its residual is lost with it";
  std::vector<float> none;
  const std::vector<float> once = decoded(encoded(values(7), none));
  const std::vector<float> twice = decoded(encoded(once, none));
  EXPECT_TRUE(std::ranges::equal(std::as_bytes(std::span(once)), std::as_bytes(std::span(twice))));
}

TEST_P(CodecTest, SizesAreWholeWordsAndNoneIsLargerThanTheValues) {
  EXPECT_EQ(bytes() % 8, 0u);
  EXPECT_LE(bytes(), codec_->elements(counts()) * sizeof(float));
  EXPECT_TRUE(!codec_->isIdentity() || bytes() == codec_->elements(counts()) * sizeof(float));
}

TEST_P(CodecTest, TheIdentityIsWhatItWouldWrite) {
  if (!codec_->isIdentity()) GTEST_SKIP() << "it is none";
  std::vector<float> none;
  const std::vector<float> due = values(3);
  EXPECT_TRUE(std::ranges::equal(encoded(due, none), std::as_bytes(std::span(due))));
}

// The gaps too, whatever was in the memory.
TEST_P(CodecTest, TheSameValuesAreTheSameBytesHoweverTheyAreCut) {
  std::vector<float> residual(codec_->elements(counts())), again = residual;
  const std::vector<float> due = values(4);
  const std::vector<std::byte> whole = encoded(due, residual);
  std::vector<std::byte> parts(bytes(), std::byte{0x5a});
  const auto* rows = dynamic_cast<const RowsCodec*>(codec_.get());
  const uint64_t dense = rows ? rows->layout().denseElements() : due.size();
  uint64_t begin = 0, final_bytes = 0;
  for (uint64_t end = 0; begin < due.size(); end += 1 + end % 5) {
    if (end > dense) end = due.size();
    const uint64_t now =
        codec_->encode({due.data(), counts(), again.data()}, {begin, end}, parts.data());
    if (end > begin) {
      EXPECT_GE(now, final_bytes);
      EXPECT_LE(now, whole.size());
      final_bytes = now;
    }
    EXPECT_EQ(std::memcmp(parts.data(), whole.data(), final_bytes), 0) << end;
    begin = end;
  }
  EXPECT_EQ(parts, whole);
  EXPECT_EQ(again, residual);
}

TEST_P(CodecTest, BytesOfAnotherSizeAreRefused) {
  std::vector<float> to(codec_->elements(counts()) + 8, -1);
  for (const int64_t more : {-8, -1, 1, 8}) {
    if (static_cast<int64_t>(bytes()) + more < 0) continue;
    const std::vector<std::byte> wrong(bytes() + static_cast<uint64_t>(more));
    try {
      codec_->decode(wrong, counts(), to.data());
      ADD_FAILURE() << more;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kBadData);
    }
  }
  EXPECT_EQ(to, std::vector<float>(to.size(), -1)) << "nothing was written";
}

// A peer may send any bits: the same values come of them each time, and no other memory is touched.
TEST_P(CodecTest, AnyBytesOfThatSizeAreValues) {
  std::minstd_rand random(11);
  for (int round = 0; round < 200; ++round) {
    std::vector<std::byte> hostile(bytes());
    for (std::byte& each : hostile) each = static_cast<std::byte>(random());
    const std::vector<float> first = decoded(hostile), second = decoded(hostile);
    EXPECT_TRUE(
        std::ranges::equal(std::as_bytes(std::span(first)), std::as_bytes(std::span(second))));
  }
}

INSTANTIATE_TEST_SUITE_P(Each, CodecTest, ::testing::ValuesIn(instances()),
                         [](const auto& each) { return each.param.name; });

TEST(Codecs, EachKindHasAName) {
  EXPECT_EQ(codecName(CodecKind::kFloat32), "float32");
  EXPECT_EQ(codecName(CodecKind::kBFloat16), "bfloat16");
  EXPECT_EQ(codecNames(),
            (std::vector<std::string_view>{"float32", "bfloat16", "int8", "top_k", "rows"}));
}

TEST(Codecs, VariablesWithAMomentumAreExact) {
  const ParameterLayout layout = makeLayout({{"gamma", Shape{20}, {{0, 0, 20}}},
                                             {"moving_mean", Shape{20}, {{0, 0, 20}}, 0.99},
                                             {"moving_variance", Shape{3}, {{1, 0, 3}}, 0.99}},
                                            2);
  const auto exact = [&layout](const CodecSpec& codec, uint32_t ps) {
    return rangesOf(codec, layout, ps).exact;
  };
  EXPECT_EQ(exact(CodecKind::kBFloat16, 0), (std::vector<ElementRange>{{0, 20}}));
  EXPECT_EQ(exact(CodecKind::kBFloat16, 1), (std::vector<ElementRange>{{0, 3}}));
  EXPECT_EQ(exact(CodecKind::kInt8, 0), (std::vector<ElementRange>{{0, 20}, {32, 52}}))
      << "a variable of 20 elements is small";
}

}  // namespace
}  // namespace dtf::arena
