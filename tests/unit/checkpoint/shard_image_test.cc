#include "common/checkpoint/shard_image.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/unit/checkpoint/checkpoint_fixture.h"

namespace dtf::checkpoint {
namespace {

// Read in pieces of any sizes, the image equals the file that writeShard() writes for the same
// parts.
TEST(ShardImage, ItIsTheFileThatWouldBeWritten) {
  for (uint64_t round = 0; round < 50; ++round) {
    SCOPED_TRACE("seed " + std::to_string(testSeed()) + ", round " + std::to_string(round));
    Random random(testSeed(), round);
    const auto disk = newDisk();
    disk->makeFolder("/shard");
    const auto ps_tasks = static_cast<uint32_t>(1 + random.below(3));
    const std::vector<ShardValues> shards = cutModel(smallModel(), ps_tasks, 7, random);
    for (uint32_t ps = 0; ps < ps_tasks; ++ps) {
      const ShardFile written = writeShard(*disk, "/shard", ps, ps_tasks, shards[ps].parts);
      const ShardImage image(ps, ps_tasks, shards[ps].parts);
      EXPECT_EQ(image.file(), written);
      std::string bytes;
      while (bytes.size() < written.bytes) {
        std::string piece(std::min<uint64_t>(1 + random.below(400), written.bytes - bytes.size()),
                          '\0');
        image.read(bytes.size(), {piece.data(), piece.size()});
        bytes += piece;
      }
      EXPECT_EQ(bytes, disk->contents("/shard/" + written.file));
      EXPECT_EQ(checksumOf(bytes), image.file().checksum);
    }
  }
}

// Its values come from several consecutive pieces of memory.
TEST(ShardImage, ALargeTensorIsReadAcrossItsChunks) {
  std::vector<float> values(kChecksumChunkBytes / sizeof(float) * 2 + 5);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  const TensorPart part{"v", Shape{static_cast<int64_t>(values.size())}, 0, values.size(),
                        values.data()};
  const ShardImage image(0, 1, {&part, 1});
  const uint64_t offset = image.file().parts.at(0).offset;
  std::vector<float> read(values.size() - 1);
  image.read(offset + sizeof(float),
             {reinterpret_cast<char*>(read.data()), read.size() * sizeof(float)});
  EXPECT_TRUE(std::equal(read.begin(), read.end(), values.begin() + 1));
}

TEST(ShardImageDeathTest, NothingIsReadBeyondTheFile) {
  const float value = 1;
  const TensorPart part{"v", Shape{1}, 0, 1, &value};
  const ShardImage image(0, 1, {&part, 1});
  char byte = 0;
  EXPECT_DEATH(image.read(image.file().bytes, {&byte, 1}), "check failed: ");
}

}  // namespace
}  // namespace dtf::checkpoint
