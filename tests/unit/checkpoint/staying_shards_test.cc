#include "common/checkpoint/staying_shards.h"

#include <gtest/gtest.h>

#include <cerrno>

#include "common/base/error.h"
#include "tests/unit/checkpoint/checkpoint_fixture.h"

namespace dtf::checkpoint {
namespace {

const std::filesystem::path kShards = "/data/runs/job/shards";

class StayingShardsTest : public ::testing::Test {
 protected:
  ShardFile write(const std::filesystem::path& folder) {
    return writeShard(disk_, folder, 0, 1, values_[0].parts);
  }
  std::string damage(const std::filesystem::path& path) {
    return findStaying(disk_, path, shard_).reason;
  }

  testing::SimulatedDisk disk_;
  Random random_{1};
  std::vector<ShardValues> values_ = cutModel(smallModel(), 1, 5, random_);
  ShardFile shard_;
};

TEST_F(StayingShardsTest, NamesFollowTheAttempt) {
  EXPECT_EQ(stayingName("step-120.tmp-1f3a.7"), "step-120-1f3a.7");
  EXPECT_EQ(stayingFolder("runs/job/checkpoints"), "runs/job/shards");
}

TEST_F(StayingShardsTest, FoldersAreMadeAndSurviveAPowerCut) {
  const auto folder = makeStaying(disk_, kShards, "step-5-1.1");
  EXPECT_EQ(folder, kShards / "step-5-1.1");
  EXPECT_EQ(makeStaying(disk_, kShards, "step-5-1.1"), folder) << "another ps of this host";
  shard_ = write(folder);
  disk_.syncFolder(folder);
  disk_.powerCut(7);
  EXPECT_EQ(findStaying(disk_, folder / shard_.file, shard_).standing, Standing::kWhole);
}

TEST_F(StayingShardsTest, WhatIsNotAsItWasWrittenIsDamaged) {
  const auto folder = makeStaying(disk_, kShards, "step-5-1.1");
  shard_ = write(folder);
  const auto path = folder / shard_.file;
  EXPECT_EQ(findStaying(disk_, folder / "shard-1-of-2.safetensors", shard_).standing,
            Standing::kAbsent);
  std::string bytes = disk_.contents(path);
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  disk_.setContents(path, bytes);
  EXPECT_EQ(findStaying(disk_, path, shard_).standing, Standing::kDamaged);
  EXPECT_NE(damage(path).find(path.string() + ": its checksum is "), std::string::npos);
  disk_.setContents(path, bytes.substr(1));
  EXPECT_NE(damage(path).find("the manifest says " + std::to_string(shard_.bytes)),
            std::string::npos);
}

TEST_F(StayingShardsTest, WhatIsDroppedIsGoneAndDroppingItAgainIsNothing) {
  const auto folder = makeStaying(disk_, kShards, "step-5-1.1");
  shard_ = write(folder);
  makeStaying(disk_, kShards, "step-6-1.2");
  dropStaying(disk_, kShards, "step-5-1.1");
  EXPECT_FALSE(disk_.exists(folder));
  EXPECT_TRUE(disk_.exists(kShards / "step-6-1.2"));
  dropStaying(disk_, kShards, "step-5-1.1");
  dropStaying(disk_, "/nowhere", "step-5-1.1");
}

TEST_F(StayingShardsTest, WhatCanNotBeRemovedIsAnError) {
  shard_ = write(makeStaying(disk_, kShards, "step-5-1.1"));
  disk_.failAll(testing::SimulatedDisk::Op::kRemove, EACCES);
  EXPECT_THROW(dropStaying(disk_, kShards, "step-5-1.1"), Error);
}

TEST_F(StayingShardsTest, AFileIsBesideItsManifestOrInTheSameRunDirectory) {
  shard_ = write(makeStaying(disk_, kShards, "step-5-1.1"));
  Manifest manifest = manifestFor(smallModel(), 5, {shard_});
  const std::filesystem::path folder = "/data/runs/job/checkpoints/step-5";
  EXPECT_EQ(shardPath(disk_, folder, manifest, shard_), folder / shard_.file) << "it doesn't stay";
  manifest.stays_in = "step-5-1.1";
  manifest.shards[0].host = "node7";
  EXPECT_EQ(shardPath(disk_, folder, manifest, shard_), kShards / "step-5-1.1" / shard_.file);
  makeStaying(disk_, folder.parent_path(), "step-5");
  write(folder);
  EXPECT_EQ(shardPath(disk_, folder, manifest, shard_), folder / shard_.file) << "it was copied";
  EXPECT_EQ(elsewhereText(folder, manifest, 0),
            "shard-0-of-1.safetensors stays with ps/0 on node7, which wrote it to "
            "shards/step-5-1.1 below its run_dir: copy it to /data/runs/job/checkpoints/step-5");
}

}  // namespace
}  // namespace dtf::checkpoint
