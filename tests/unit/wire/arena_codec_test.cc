#include "common/wire/arena_codec.h"

#include <capnp/message.h>
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "common/base/error.h"
#include "common/wire/ps.capnp.h"

namespace dtf::wire {
namespace {

constexpr uint64_t kChunkElements = kChunkBytesMax / sizeof(float);

TEST(ArenaCodec, TheLargestShardFitsOneMessage) {
  const net::Limits limits = arenaLimits(shard::kShardElementsMax);
  EXPECT_EQ(arenaChunks(shard::kShardElementsMax), 480u);
  EXPECT_LE(limits.segments_max, 512u) << "Cap'n Proto reads no more";
  EXPECT_GE(limits.bytes_max, uint64_t{120} << 30);
}

TEST(ArenaCodec, AShardOfMoreThan64ChunksHasRoomForAllItsSegments) {
  EXPECT_EQ(arenaChunks(65 * kChunkElements), 65u);
  EXPECT_GT(arenaLimits(65 * kChunkElements).segments_max, 65u);
  EXPECT_EQ(arenaChunks(65 * kChunkElements + 2), 66u);
}

// Makes as many references as the largest shard has chunks, in the way of an exchange.
TEST(ArenaCodec, SegmentsBesideTheChunksAreFew) {
  const uint32_t chunks = arenaChunks(shard::kShardElementsMax);
  alignas(8) const kj::byte word[8] = {};
  capnp::MallocMessageBuilder message(16 + 2 * chunks);
  auto list = message.initRoot<capnp::AnyPointer>().initAs<capnp::List<capnp::Data>>(chunks);
  for (uint32_t i = 0; i < chunks; ++i)
    list.adopt(i, message.getOrphanage().referenceExternalData(capnp::Data::Reader(word, 8)));
  EXPECT_LE(message.getSegmentsForOutput().size(),
            arenaLimits(shard::kShardElementsMax).segments_max);
}

// The floats of `chunks`, each chunk a blob of its own.
struct Arena {
  explicit Arena(const std::vector<std::vector<float>>& chunks) {
    auto list = message.initRoot<schema::PsData::InitialiseParams>().initValues(
        static_cast<uint32_t>(chunks.size()));
    for (uint32_t i = 0; i < list.size(); ++i) {
      auto blob = list.init(i, static_cast<uint32_t>(chunks[i].size() * sizeof(float)));
      if (!chunks[i].empty()) std::memcpy(blob.begin(), chunks[i].data(), blob.size());
    }
  }
  capnp::List<capnp::Data>::Reader list() {
    return message.getRoot<schema::PsData::InitialiseParams>().asReader().getValues();
  }
  capnp::MallocMessageBuilder message;
  Buffer assembled;
};

std::vector<float> read(Arena& arena, uint64_t elements) {
  const auto values = readArena(arena.list(), elements, arena.assembled);
  return {values.begin(), values.end()};
}

TEST(ArenaCodec, ChunksAreCountedInWholeQuartersOfAGigabyte) {
  constexpr uint64_t kPerChunk = kChunkBytesMax / sizeof(float);
  EXPECT_EQ(arenaChunks(0), 0u);
  EXPECT_EQ(arenaChunks(2), 1u);
  EXPECT_EQ(arenaChunks(kPerChunk), 1u);
  EXPECT_EQ(arenaChunks(kPerChunk + 2), 2u);
}

// Two links in one process may have different chunk sizes.
TEST(ArenaCodec, ChunksHaveTheSizeOfTheLink) {
  EXPECT_EQ(arenaChunks(100, 16), 25u);
  EXPECT_EQ(arenaChunks(101, 16), 26u);
  EXPECT_EQ(arenaChunks(100), 1u);
  EXPECT_GT(arenaLimits(4000, 16).segments_max, 1000u);
  EXPECT_LT(arenaLimits(4000).segments_max, 100u);
}

TEST(ArenaCodec, OneChunkIsReadWhereItLies) {
  Arena arena({{1, 2, 3, 4}});
  const auto values = readArena(arena.list(), 4, arena.assembled);
  EXPECT_EQ(reinterpret_cast<const kj::byte*>(values.data()), arena.list()[0].begin());
  EXPECT_EQ(read(arena, 4), (std::vector<float>{1, 2, 3, 4}));
}

TEST(ArenaCodec, ChunksThatLieApartArePutTogetherInOrder) {
  Arena arena({{1, 2, 3}, {}, {4, 5}, {6}});
  EXPECT_EQ(read(arena, 6), (std::vector<float>{1, 2, 3, 4, 5, 6}));
}

TEST(ArenaCodec, AnotherSizeThanDeclaredIsRefused) {
  for (const uint64_t declared : {uint64_t{0}, uint64_t{3}, uint64_t{5}, uint64_t{1} << 40}) {
    Arena arena({{1, 2}, {3, 4}});
    try {
      read(arena, declared);
      ADD_FAILURE() << declared;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kBadData);
      EXPECT_NE(error.message().find("16 bytes"), std::string::npos) << error.message();
    }
  }
  Arena none({});
  EXPECT_TRUE(read(none, 0).empty());
}

}  // namespace
}  // namespace dtf::wire
