#include "common/checkpoint/shard_file.h"

#include <gtest/gtest.h>

#include <cstring>

#include "common/base/checksum.h"
#include "common/base/error.h"
#include "common/checkpoint/safetensors.h"
#include "tests/support/simulated_disk.h"

namespace dtf::checkpoint {
namespace {

using testing::SimulatedDisk;

TEST(ShardFile, HoldsWholeVariablesInTheirShapeAndPartsUnderTheirRange) {
  SimulatedDisk disk;
  const float kernel[] = {1, 2, 3, 4, 5, 6};
  const float bias[] = {7, 8};
  const std::vector<TensorPart> parts = {{"dense/kernel", Shape{2, 3}, 0, 6, kernel},
                                         {"dense/bias", Shape{5}, 2, 2, bias},
                                         {"empty", Shape{5}, 2, 0, nullptr}};
  const ShardFile shard = writeShard(disk, "/", 1, 3, parts);
  EXPECT_EQ(shard.file, "shard-1-of-3.safetensors");
  const std::string bytes = disk.contents("/shard-1-of-3.safetensors");
  EXPECT_EQ(shard.bytes, bytes.size());
  EXPECT_EQ(shard.checksum, checksumOf(bytes));
  const auto header = readSafetensorsHeader(*disk.open("/" + shard.file), shard.file);
  ASSERT_EQ(header.entries.size(), 2u);
  EXPECT_EQ(header.entries[0], (SafetensorsEntry{"dense/kernel", "F32", {2, 3}, 0, 24}));
  EXPECT_EQ(header.entries[1], (SafetensorsEntry{"dense/bias@2:2", "F32", {2}, 24, 32}));
  EXPECT_EQ(header.metadata.at("shard"), "1 of 3");
  ASSERT_EQ(shard.parts.size(), 2u);
  EXPECT_EQ(shard.parts[1],
            (StoredPart{"dense/bias", 2, 2, header.data_begin + 24,
                        checksumOf({reinterpret_cast<const char*>(bias), sizeof bias})}));
  EXPECT_EQ(std::memcmp(bytes.data() + shard.parts[1].offset, bias, sizeof bias), 0);
}

TEST(ShardFile, IsDurableOnceWritten) {
  SimulatedDisk disk;
  const float value = 3;
  const TensorPart part{"a", Shape{}, 0, 1, &value};
  const ShardFile shard = writeShard(disk, "/", 0, 1, {&part, 1});
  disk.syncFolder("/");  // the chief's
  disk.powerCut(0);
  EXPECT_EQ(checksumOf(disk.contents("/" + shard.file)), shard.checksum);
}

TEST(ShardFile, NeverWritesIntoAFileThatIsThere) {
  SimulatedDisk disk;
  writeShard(disk, "/", 0, 1, {});
  EXPECT_THROW(writeShard(disk, "/", 0, 1, {}), Error);
}

TEST(ShardFile, RefusesWhatItCannotName) {
  SimulatedDisk disk;
  const float value = 3;
  const auto refused = [&](const TensorPart& part, int times = 1) {
    const std::vector<TensorPart> parts(static_cast<size_t>(times), part);
    try {
      writeShard(disk, "/", 0, 1, parts);
      return std::string("accepted");
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kBadConfig);
      return error.message();
    }
  };
  for (const char* name : {"", "a b", "a@0:1", "\xff", "a\n"})
    EXPECT_NE(refused({name, Shape{}, 0, 1, &value}).find("can't hold"), std::string::npos) << name;
  EXPECT_NE(refused({"a", Shape{4}, 4, 1, &value}).find("outside its shape [4]"),
            std::string::npos);
  EXPECT_NE(refused({"a", Shape{4}, 1, ~uint64_t{0}, &value}).find("outside"), std::string::npos);
  EXPECT_NE(refused({"a", Shape{4}, 1, 1, &value}, 2).find("a@1:1 occurs twice"),
            std::string::npos);
  EXPECT_TRUE(disk.files().empty()) << "refused before anything is written";
}

TEST(PlainName, IsNeverAPath) {
  EXPECT_TRUE(isPlainName("step-5-1f3a.1"));
  EXPECT_TRUE(isPlainName(std::string(128, 'a')));
  for (const char* name : {"", ".", "..", ".a", "a/b", "/a", "a b", "a\n"})
    EXPECT_FALSE(isPlainName(name)) << name;
  EXPECT_FALSE(isPlainName(std::string(129, 'a')));
}

}  // namespace
}  // namespace dtf::checkpoint
