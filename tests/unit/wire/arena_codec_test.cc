#include "common/wire/arena_codec.h"

#include <capnp/message.h>
#include <gtest/gtest.h>

namespace dtf::wire {
namespace {

constexpr uint64_t kChunkElements = kChunkBytesMax / sizeof(float);

TEST(ArenaCodec, TheLargestShardFitsOneMessage) {
  const net::Limits limits = arenaLimits(ps::kShardElementsMax);
  EXPECT_EQ(arenaChunks(ps::kShardElementsMax), 480u);
  EXPECT_LE(limits.segments_max, 512u) << "Cap'n Proto reads no more";
  EXPECT_GE(limits.bytes_max, uint64_t{120} << 30);
}

TEST(ArenaCodec, AShardOfMoreThan64ChunksHasRoomForAllItsSegments) {
  EXPECT_EQ(arenaChunks(65 * kChunkElements), 65u);
  EXPECT_GT(arenaLimits(65 * kChunkElements).segments_max, 65u);
  EXPECT_EQ(arenaChunks(65 * kChunkElements + 2), 66u);
}

// As many references as the largest shard has chunks, made as an exchange makes them.
TEST(ArenaCodec, SegmentsBesideTheChunksAreFew) {
  const uint32_t chunks = arenaChunks(ps::kShardElementsMax);
  alignas(8) const kj::byte word[8] = {};
  capnp::MallocMessageBuilder message(16 + 2 * chunks);
  auto list = message.initRoot<capnp::AnyPointer>().initAs<capnp::List<capnp::Data>>(chunks);
  for (uint32_t i = 0; i < chunks; ++i)
    list.adopt(i, message.getOrphanage().referenceExternalData(capnp::Data::Reader(word, 8)));
  EXPECT_LE(message.getSegmentsForOutput().size(), arenaLimits(ps::kShardElementsMax).segments_max);
}

}  // namespace
}  // namespace dtf::wire
