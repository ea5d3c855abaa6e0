#include "common/arena/shard_codecs.h"

#include <gtest/gtest.h>

#include <vector>

namespace dtf::arena {
namespace {

TEST(ShardCodecs, AShardWithoutTablesHasOneCodec) {
  const ShardCodecs codecs(CodecKind::kBFloat16, 32, GradientLayout(32), {});
  EXPECT_EQ(&codecs.gradient(), &codecs.whole());
  EXPECT_EQ(&codecs.dense(), &codecs.whole());
  EXPECT_EQ(codecs.rowsAlone(), nullptr);
  EXPECT_EQ(codecs.whole().name(), "bfloat16");
}

TEST(ShardCodecs, TheTablesOfAShardAreSentWholeOrByRows) {
  const std::vector<uint32_t> counts = {2};
  const ShardCodecs codecs(CodecKind::kFloat32, 32, GradientLayout(32, {{16, 5, 3}}), {});
  EXPECT_EQ(codecs.whole().elements(), 32u);
  EXPECT_EQ(codecs.dense().elements(), 16u);
  EXPECT_EQ(codecs.gradient().name(), "rows");
  EXPECT_EQ(codecs.gradient().elements(counts), 16 + 2 * 4u);
  EXPECT_EQ(codecs.rowsAlone()->elements(counts), 2 * 4u);
}

// What a worker and its ps make of one declaration.
TEST(ShardCodecs, StatisticsStayFloat32) {
  const ParameterLayout layout = makeLayout(
      {{"gamma", Shape{20}, {{0, 0, 20}}}, {"moving_mean", Shape{20}, {{0, 0, 20}}, 0.9}}, 1);
  const ShardCodecs codecs(CodecKind::kBFloat16, layout, 0);
  EXPECT_EQ(codecs.whole().bytes(), (layout.shards[0].elements + 20) * 2);
}

// So that a parameter is never further from its value than one change.
TEST(ShardCodecs, ALossyCodecSendsParametersAsFloat32OrAsChanges) {
  const ShardCodecs codecs(CodecKind::kInt8, 48, GradientLayout(48, {{32, 5, 3}}), {});
  EXPECT_TRUE(codecs.whole().isIdentity());
  EXPECT_TRUE(codecs.dense().isIdentity());
  EXPECT_TRUE(codecs.rowsAlone()->isIdentity());
  EXPECT_EQ(codecs.change()->elements(), 32u);
  EXPECT_EQ(codecs.gradient().stateElements(), 32u) << "rows have no residual";
  EXPECT_EQ(ShardCodecs(CodecKind::kBFloat16, 32, GradientLayout(32), {}).change(), nullptr);
}

}  // namespace
}  // namespace dtf::arena
