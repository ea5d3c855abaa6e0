#include "common/wire/gradient_codec.h"

#include <capnp/message.h>
#include <gtest/gtest.h>

#include "common/base/error.h"
#include "common/wire/arena_codec.h"
#include "common/wire/ps.capnp.h"

namespace dtf::wire {
namespace {

// 16 dense elements, tables of 10 x 4 and of 3 x 1.
const ps::GradientLayout kLayout(80, {{16, 10, 4}, {64, 3, 1}});

std::vector<uint32_t> thereAndBack(const std::vector<uint32_t>& counts,
                                   const ps::GradientLayout& layout = kLayout) {
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
  EXPECT_TRUE(thereAndBack({}, ps::GradientLayout(32)).empty());
}

TEST(GradientCodec, RefusesCountsThatTheModelDoesNotHave) {
  EXPECT_EQ(refusalOf({}), "a gradient came with rows of 0 sparse variables for a shard with 2");
  EXPECT_EQ(refusalOf({1, 1, 1}),
            "a gradient came with rows of 3 sparse variables for a shard with 2");
  EXPECT_EQ(refusalOf({11, 0}),
            "a gradient came with 11 rows of a sparse variable of which the shard has 10");
  EXPECT_EQ(refusalOf({0, ~uint32_t{0}}),
            "a gradient came with 4294967295 rows of a sparse variable of which the shard has 3");
}

TEST(GradientCodec, AConnectionTakesArenasAndTheLargestGradient) {
  const ps::GradientLayout ids_beside(64, {{0, 64, 1}});
  EXPECT_EQ(gradientLimits(64, ids_beside).bytes_max, arenaLimits(128).bytes_max);
  EXPECT_EQ(gradientLimits(32, ps::GradientLayout(32)).bytes_max, arenaLimits(32).bytes_max);
}

TEST(GradientCodec, AMessageHasWordsForChunksAndCounts) {
  const std::vector<float> values(16);
  EXPECT_EQ(gradientWords({values, nullptr}), 2u);
  EXPECT_EQ(gradientWords({values, nullptr, {0, 0, 0}}), 4u);
}

}  // namespace
}  // namespace dtf::wire
