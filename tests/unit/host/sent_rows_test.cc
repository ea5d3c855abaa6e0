#include "common/host/sent_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "common/arena/shard_codecs.h"

namespace dtf::host {
namespace {

// A table of 8 x 2 behind 16 dense elements.
constexpr uint64_t kTableDense = 16, kTableShard = 32;

class SentRowsTest : public ::testing::TestWithParam<bool> {
 protected:
  static arena::GradientLayout layout() {
    return arena::GradientLayout(kTableShard, {{kTableDense, 8, 2}});
  }
  static const arena::ShardCodecs& codecs() {
    static const arena::ShardCodecs rounding(arena::CodecKind::kBFloat16, kTableShard, layout(),
                                             {});
    static const arena::ShardCodecs keeping(arena::CodecKind::kFloat32, kTableShard, layout(), {});
    return GetParam() ? rounding : keeping;
  }
  // Row r has 10 r and 10 r + 1.
  std::shared_ptr<const arena::ParameterVersion> parameters() {
    const std::shared_ptr<arena::ParameterVersion> made = pool_.acquire(0);
    for (uint64_t row = 0; row < 8; ++row)
      for (uint64_t i = 0; i < 2; ++i)
        made->mutableData()[kTableDense + 2 * row + i] = static_cast<float>(10 * row + i);
    return made;
  }
  // Returns an arena with the rows of `part` at their places.
  static std::vector<float> placed(const wire::ArenaPart& part,
                                   const std::vector<uint32_t>& counts) {
    const arena::GradientLayout alone = layout().rowsAlone();
    std::vector<float> rows(alone.elementsOf(counts)), arena(kTableShard);
    if (GetParam()) {
      EXPECT_EQ(part.bytes.size(), codecs().rowsAlone()->bytes(counts));
      codecs().rowsAlone()->decode(part.bytes, counts, rows.data());
    } else {
      EXPECT_EQ(part.bytes.size(), rows.size() * sizeof(float));
      std::memcpy(rows.data(), part.bytes.data(), part.bytes.size());
    }
    EXPECT_EQ(alone.fault({rows, nullptr, counts}), std::nullopt);
    arena::scatterRows(layout(), {rows, nullptr, counts}, arena.data());
    return {arena.begin() + kTableDense, arena.end()};
  }

  arena::VersionPool pool_{kTableShard, 2};
  SentRows sent_{layout(), codecs().rowsAlone()};
};

TEST_P(SentRowsTest, AreThoseThatAreNamed) {
  const arena::RowSet rows{{2}, {1, 5}};
  std::vector<float> due(16);
  due[2] = 10, due[3] = 11, due[10] = 50, due[11] = 51;
  EXPECT_EQ(placed(sent_.of(*parameters(), rows), rows.counts), due);
  EXPECT_TRUE(sent_.of(*parameters(), {{0}, {}}).bytes.empty());
}

TEST_P(SentRowsTest, WhatAMessageRefersToStays) {
  const auto from = parameters();
  const arena::RowSet few{{1}, {7}}, more{{3}, {0, 1, 2}};
  std::vector<wire::ArenaPart> sent;
  for (int i = 0; i < 4; ++i) sent.push_back(sent_.of(*from, i % 2 == 0 ? few : more));
  for (int i = 0; i < 4; i += 2) EXPECT_EQ(placed(sent[i], few.counts)[15], 71);
  for (int i = 1; i < 4; i += 2) EXPECT_EQ(placed(sent[i], more.counts)[4], 20);
  const std::byte* const first = sent[0].bytes.data();
  sent.clear();
  EXPECT_EQ(sent_.of(*from, few).bytes.data(), first) << "and is used again then";
}

INSTANTIATE_TEST_SUITE_P(Each, SentRowsTest, ::testing::Bool());

}  // namespace
}  // namespace dtf::host
