#include "common/wire/gradient_codec.h"

#include <capnp/message.h>
#include <gtest/gtest.h>

#include "common/base/error.h"
#include "common/wire/arena_codec.h"
#include "common/wire/ps.capnp.h"

namespace dtf::wire {
namespace {

// 16 dense elements, tables of 10 x 4 and of 3 x 1.
const arena::GradientLayout kLayout(80, {{16, 10, 4}, {64, 3, 1}});

std::vector<uint32_t> thereAndBack(const std::vector<uint32_t>& counts,
                                   const arena::GradientLayout& layout = kLayout) {
  capnp::MallocMessageBuilder message;
  auto params = message.initRoot<schema::PsData::ExchangeParams>();
  encodeRowCounts({{}, nullptr, counts}, params.initRows(static_cast<uint32_t>(counts.size())));
  return decodeRowCounts(params.asReader().getRows(), layout);
}

std::string refusalOf(const std::vector<uint32_t>& counts) {
  try {
    thereAndBack(counts);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBadData);
    return error.message();
  }
  return "";
}

TEST(GradientCodec, KeepsTheCounts) {
  EXPECT_EQ(thereAndBack({10, 0}), (std::vector<uint32_t>{10, 0}));
  EXPECT_TRUE(thereAndBack({}, arena::GradientLayout(32)).empty());
}

TEST(GradientCodec, RefusesCountsThatTheModelDoesNotHave) {
  EXPECT_EQ(refusalOf({}), "an arena came with rows of 0 sparse variables, but the shard has 2");
  EXPECT_EQ(refusalOf({1, 1, 1}),
            "an arena came with rows of 3 sparse variables, but the shard has 2");
  EXPECT_EQ(refusalOf({11, 0}),
            "an arena came with 11 rows of a sparse variable, but the shard has 10 of it");
  EXPECT_EQ(refusalOf({0, ~uint32_t{0}}),
            "an arena came with 4294967295 rows of a sparse variable, but the shard has 3 of it");
}

TEST(GradientCodec, AConnectionTakesArenasAndTheLargestGradient) {
  const arena::GradientLayout ids_beside(64, {{0, 64, 1}});
  EXPECT_EQ(gradientLimits(64, ids_beside).bytes_max,
            arenaLimits(128).bytes_max + 64 * sizeof(uint32_t))
      << "with the rows that are wanted";
  EXPECT_EQ(gradientLimits(32, arena::GradientLayout(32)).bytes_max, arenaLimits(32).bytes_max);
}

TEST(GradientCodec, AMessageHasWordsForChunksAndCounts) {
  const std::vector<float> values(16);
  EXPECT_EQ(gradientWords({values, nullptr}), 2u);
  EXPECT_EQ(gradientWords({values, nullptr, {0, 0, 0}}), 4u);
}

// Encodes an exchange that wants these rows, and decodes the rows again.
arena::RowSet wantedAgain(const arena::RowSet& rows, const arena::GradientLayout& layout) {
  capnp::MallocMessageBuilder message;
  auto call = message.initRoot<schema::PsData::ExchangeParams>();
  encodeRowSet(rows, call);
  return decodeRowSet(call.asReader().getWantedCounts(), call.asReader().getWantedIds(), layout);
}

TEST(GradientCodec, RowsThatAreWantedComeAcross) {
  const arena::GradientLayout layout(64, {{16, 10, 3}, {48, 3, 1}});
  for (const arena::RowSet& rows :
       {arena::RowSet{}, arena::RowSet{{0, 0}, {}}, arena::RowSet{{2, 1}, {0, 9, 2}}}) {
    EXPECT_EQ(wantedAgain(rows, layout), rows);
    EXPECT_EQ(rowSetWords(rows), (rows.counts.size() + 1) / 2 + (rows.ids.size() + 1) / 2);
  }
  for (const auto& [rows, why] : std::vector<std::pair<arena::RowSet, std::string>>{
           {{{1}, {0}}, "rows of 1 sparse variables, but the shard has 2"},
           {{{1, 1, 1}, {0, 0, 0}}, "rows of 3 sparse variables, but the shard has 2"},
           {{{2, 0}, {0}}, "the ids of 1 rows, but 2 are counted"},
           {{{1, 1}, {0, 3}}, "row 3 of a sparse variable, but the shard has 3 of it"}}) {
    try {
      wantedAgain(rows, layout);
      ADD_FAILURE() << why;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kBadData);
      EXPECT_EQ(error.message(), "a bad request for rows: " + why);
    }
  }
}

TEST(GradientCodec, CodecsComeAcrossAndNoneAreOfAnEarlierVersion) {
  capnp::MallocMessageBuilder message;
  auto hello = message.initRoot<schema::Hello>();
  EXPECT_EQ(decodeCodecs(hello.asReader().getCodecs()), std::nullopt);
  encodeCodecs(hello);
  EXPECT_EQ(decodeCodecs(hello.asReader().getCodecs()),
            (std::vector<std::string>{"float32", "bfloat16", "int8", "top_k", "rows"}));
  hello.initCodecs(1'000);
  EXPECT_EQ(decodeCodecs(hello.asReader().getCodecs())->size(), 64u);
}

}  // namespace
}  // namespace dtf::wire
