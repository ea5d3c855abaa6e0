#include "common/wire/ps/parameter_reader.h"

#include <capnp/message.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <memory>
#include <vector>

#include "common/arena/codecs/bfloat16.h"
#include "common/arena/row_set.h"
#include "common/base/error.h"
#include "common/wire/ps.capnp.h"

namespace dtf::wire {
namespace {

// 16 dense elements, 4 to 7 of them exact, and a table of 5 x 3.
constexpr uint64_t kDenseElements = 16, kShardElements = 32;
const std::vector<arena::ElementRange> kExactOnes = {{4, 8}};

arena::GradientLayout tableLayout() {
  return arena::GradientLayout(kShardElements, {{kDenseElements, 5, 3}});
}

// Element i has 257 + 2 i, which bfloat16 rounds.
std::vector<float> shardValues() {
  std::vector<float> values(kShardElements);
  for (size_t i = 0; i < values.size(); ++i) values[i] = 257.0F + 2.0F * static_cast<float>(i);
  return values;
}

using Bytes = std::vector<std::byte>;

Bytes bytesOf(const std::vector<float>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

Bytes narrowed(uint64_t elements) {
  const arena::BFloat16Codec codec(elements, kExactOnes);
  Bytes bytes(codec.bytes());
  codec.encode({.values = shardValues().data()}, {0, elements}, bytes.data());
  return bytes;
}

// The ids of rows 1 and 4, as in a reply.
const std::vector<uint32_t> kNamedCounts = {2};
const arena::RowSet kNamed{kNamedCounts, {1, 4}};
Bytes namedRows(bool narrows) {
  const arena::GradientLayout alone = tableLayout().rowsAlone();
  std::vector<float> rows(alone.elementsOf(kNamedCounts));
  arena::gatherRows(tableLayout(), kNamed, shardValues().data(), rows.data());
  if (!narrows) return bytesOf(rows);
  const arena::RowsCodec codec(alone, std::make_unique<arena::BFloat16Codec>(0));
  Bytes bytes(codec.bytes(kNamedCounts));
  codec.encode({rows.data(), kNamedCounts}, {0, rows.size()}, bytes.data());
  return bytes;
}

Bytes joined(Bytes first, const Bytes& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

// A reply with these parameters, in chunks of that size.
class Answer {
 public:
  Answer(const Bytes& bytes, const std::vector<uint32_t>& counts, size_t chunk = 1 << 20) {
    auto results = message_.initRoot<schema::PsData::PullResults>();
    auto list = results.initParameters(static_cast<uint32_t>((bytes.size() + chunk - 1) / chunk));
    for (uint32_t i = 0; i < list.size(); ++i) {
      const size_t size = std::min(chunk, bytes.size() - i * chunk);
      std::memcpy(list.init(i, static_cast<uint32_t>(size)).begin(), bytes.data() + i * chunk,
                  size);
    }
    auto rows = results.initRows(static_cast<uint32_t>(counts.size()));
    for (uint32_t i = 0; i < rows.size(); ++i) rows.set(i, counts[i]);
  }
  schema::PsData::PullResults::Reader get() {
    return message_.getRoot<schema::PsData::PullResults>().asReader();
  }

 private:
  capnp::MallocMessageBuilder message_;
};

class ParameterReaderTest : public ::testing::Test {
 protected:
  static ParameterReader reader(bool narrows) {
    static const arena::ShardCodecs rounding(arena::CodecKind::kBFloat16, kShardElements,
                                             tableLayout(), {kExactOnes});
    static const arena::ShardCodecs keeping(arena::CodecKind::kFloat32, kShardElements,
                                            tableLayout(), {kExactOnes});
    return {"ps/1 (fake:1)", tableLayout(), narrows ? rounding : keeping};
  }
  // Returns the arena after the read; it holds -1 before.
  static std::vector<float> rowsRead(bool narrows, Answer& answer) {
    ParameterReader reads = reader(narrows);
    Buffer arena(kShardElements * sizeof(float));
    std::fill_n(arena.as<float>(), kShardElements, -1.0F);
    reads.readRows(answer.get().getParameters(), answer.get().getRows(), kNamed, nullptr, arena);
    return {arena.as<float>(), arena.as<float>() + kShardElements};
  }
  static std::string refusal(const std::function<void()>& act,
                             ErrorCode code = ErrorCode::kBadData) {
    try {
      act();
      return "nothing";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code);
      return error.message();
    }
  }
};

TEST_F(ParameterReaderTest, RowsComeToTheirPlacesWhetherRoundedOrNotAndInAnyChunks) {
  const std::vector<float> all = shardValues();
  for (const bool narrows : {false, true})
    for (const size_t chunk : {1 << 20, 8}) {
      const Bytes dense =
          narrows ? narrowed(kDenseElements) : bytesOf({all.begin(), all.begin() + kDenseElements});
      Answer answer(joined(dense, namedRows(narrows)), kNamedCounts, chunk);
      const std::vector<float> arena = rowsRead(narrows, answer);
      for (size_t i = 0; i < arena.size(); ++i) {
        const size_t row = i < kDenseElements ? 0 : (i - kDenseElements) / 3;
        if (i >= kDenseElements && row != 1 && row != 4) {
          EXPECT_EQ(arena[i], -1) << i;
        } else if (narrows && (i < 4 || i >= 8)) {
          EXPECT_NEAR(arena[i], all[i], 1) << i;
          EXPECT_NE(arena[i], all[i]) << i;
        } else {
          EXPECT_EQ(arena[i], all[i]) << i;
        }
      }
    }
}

TEST_F(ParameterReaderTest, AllOfARoundedShardFillsAnArenaThatIsMade) {
  ParameterReader reads = reader(true);
  for (const size_t chunk : {1 << 20, 8}) {
    Answer answer(narrowed(kShardElements), {}, chunk);
    Buffer arena;
    reads.readWhole(answer.get().getParameters(), arena);
    ASSERT_EQ(arena.bytes(), kShardElements * sizeof(float));
    EXPECT_EQ(arena.as<float>()[0], 256);
    EXPECT_EQ(arena.as<float>()[4], 265);
    EXPECT_NEAR(arena.as<float>()[31], 319, 1);
  }
}

TEST_F(ParameterReaderTest, WhatTheShardDoesNotHaveIsRefused) {
  const Bytes rows = joined(bytesOf(std::vector<float>(kDenseElements)), namedRows(false));
  Answer short_of(Bytes(rows.begin(), rows.end() - 8), kNamedCounts);
  EXPECT_EQ(refusal([&] { rowsRead(false, short_of); }),
            "an arena of 88 bytes came instead of the declared 96");
  const std::string other = "ps/1 (fake:1) sent rows that were not requested";
  for (const std::vector<uint32_t>& counts : std::vector<std::vector<uint32_t>>{{6}, {1}, {2, 2}}) {
    Answer miscounted(rows, counts);
    EXPECT_EQ(refusal([&] { rowsRead(false, miscounted); }), other);
  }
  Bytes wrong = rows;
  const uint32_t row = 3;
  std::memcpy(wrong.data() + kDenseElements * sizeof(float) + 4, &row, sizeof(row));
  Answer other_row(wrong, kNamedCounts);
  EXPECT_EQ(refusal([&] { rowsRead(false, other_row); }), other);
  ParameterReader reads = reader(false);
  Buffer arena;
  Answer right(rows, kNamedCounts);
  EXPECT_EQ(refusal([&] {
              reads.readRows(right.get().getParameters(), right.get().getRows(), {}, nullptr,
                             arena);
            }),
            other)
      << "all were wanted";
}

TEST_F(ParameterReaderTest, APsThatSendsFloat32IsOfAnEarlierVersion) {
  ParameterReader reads = reader(true);
  Answer answer(bytesOf(shardValues()), {});
  Buffer arena;
  EXPECT_EQ(
      refusal([&] { reads.readWhole(answer.get().getParameters(), arena); }, ErrorCode::kBadConfig),
      "ps/1 (fake:1) sends float32 where 'transfer_dtype: bfloat16' is declared: it is of a "
      "version without it; start all tasks of the job from one");
}

}  // namespace
}  // namespace dtf::wire
