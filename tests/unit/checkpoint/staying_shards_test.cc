#include "common/checkpoint/staying_shards.h"

#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <cerrno>
#include <functional>
#include <memory>
#include <thread>
#include <utility>

#include "common/base/error.h"
#include "tests/support/temporary_files.h"
#include "tests/unit/checkpoint/checkpoint_fixture.h"

namespace dtf::checkpoint {
namespace {

const std::filesystem::path kShards = "/data/runs/job/shards";

// Runs `overtaker` before the operation of that index; reads count as operations, too.
class OvertakenDisk final : public FileSystem {
 public:
  OvertakenDisk(FileSystem& disk, size_t at, std::function<void()> overtaker)
      : disk_(disk), at_(at), overtaker_(std::move(overtaker)) {}

  std::unique_ptr<WritableFile> create(const Path& file) override { return next().create(file); }
  std::unique_ptr<ReadableFile> open(const Path& file) override { return next().open(file); }
  std::vector<FolderEntry> list(const Path& folder) override { return next().list(folder); }
  bool exists(const Path& path) override { return next().exists(path); }
  void makeFolder(const Path& folder) override { next().makeFolder(folder); }
  void rename(const Path& from, const Path& to) override { next().rename(from, to); }
  void removeFile(const Path& file) override { next().removeFile(file); }
  void removeFolder(const Path& folder) override { next().removeFolder(folder); }
  void syncFolder(const Path& folder) override { next().syncFolder(folder); }

 private:
  FileSystem& next() {
    if (operations_++ == at_) overtaker_();
    return disk_;
  }

  FileSystem& disk_;
  const size_t at_;
  const std::function<void()> overtaker_;
  size_t operations_ = 0;
};

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

// The process that made the folders is killed at any operation. The next one goes on with the
// folders that it finds, and the power fails after it has reported success.
TEST_F(StayingShardsTest, WhatAKilledProcessMadeSurvivesAPowerCutToo) {
  bool killed = true;
  for (size_t at = 0; killed; ++at) {
    SCOPED_TRACE(at);
    testing::SimulatedDisk disk;
    const auto save = [&](const std::string& name) {
      const auto folder = makeStaying(disk, kShards, name);
      const ShardFile shard = writeShard(disk, folder, 0, 1, values_[0].parts);
      disk.syncFolder(folder);
      return shard;
    };
    disk.crashAt(at);
    killed = false;
    try {
      save("step-0-1.1");
    } catch (const testing::SimulatedCrash&) {
      killed = true;
    }
    disk.restart();
    const ShardFile shard = save("step-0-2.1");
    disk.powerCut(0);
    EXPECT_EQ(findStaying(disk, kShards / "step-0-2.1" / shard.file, shard).standing,
              Standing::kWhole);
  }
}

// The first of two ps of a host is killed, and both write to the same folder.
TEST_F(StayingShardsTest, AFolderThatAnotherMadeAndDidNotSyncSurvivesAPowerCut) {
  makeStaying(disk_, kShards, "step-0-1.1");
  disk_.makeFolder(kShards / "step-5-1.1");
  const auto folder = makeStaying(disk_, kShards, "step-5-1.1");
  shard_ = write(folder);
  disk_.syncFolder(folder);
  disk_.powerCut(0);
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

// Two ps share a host and a run directory: before each operation of the one, the other has removed
// everything.
TEST_F(StayingShardsTest, TwoMayDropTheSameAtTheSameTime) {
  bool met = true;
  for (size_t at = 0; met; ++at) {
    SCOPED_TRACE(at);
    const auto folder = makeStaying(disk_, kShards, "step-5-1.1");
    write(folder);
    disk_.makeFolder(folder / "folder");
    met = false;
    OvertakenDisk overtaken(disk_, at, [&] {
      met = true;
      dropStaying(disk_, kShards, "step-5-1.1");
    });
    EXPECT_NO_THROW(dropStaying(overtaken, kShards, "step-5-1.1"));
    EXPECT_FALSE(disk_.exists(folder));
  }
}

TEST_F(StayingShardsTest, ManyPsOfOneRunDirectoryMayDropTheSameAtTheSameTime) {
  constexpr int kRounds = 20;
  constexpr int kPs = 4;
  const testing::TemporaryFiles files;
  const std::filesystem::path shards = "run/shards";
  std::atomic<int> failed = 0;
  for (int round = 0; round < kRounds; ++round) {
    const auto folder = makeStaying(realFileSystem(), shards, "step-5-1.1");
    for (int ps = 0; ps < kPs; ++ps)
      realFileSystem().create(folder / shardFileName(static_cast<uint32_t>(ps), kPs))->close();
    std::barrier start(kPs);
    std::vector<std::jthread> droppers;
    for (int ps = 0; ps < kPs; ++ps)
      droppers.emplace_back([&] {
        start.arrive_and_wait();
        try {
          dropStaying(realFileSystem(), shards, "step-5-1.1");
        } catch (const Error&) {
          ++failed;
        }
      });
    droppers.clear();
    EXPECT_FALSE(realFileSystem().exists(folder));
  }
  EXPECT_EQ(failed, 0);
}

// The folder is gone, but not durably: on success the caller would remove its record.
TEST_F(StayingShardsTest, ARemovalThatCanNotBeSyncedIsAnError) {
  shard_ = write(makeStaying(disk_, kShards, "step-5-1.1"));
  disk_.failAll(testing::SimulatedDisk::Op::kSyncFolder, EIO);
  EXPECT_THROW(dropStaying(disk_, kShards, "step-5-1.1"), Error);
  EXPECT_FALSE(disk_.exists(kShards / "step-5-1.1"));
  EXPECT_THROW(dropStaying(disk_, kShards, "step-5-1.1"), Error) << "asked again";
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
