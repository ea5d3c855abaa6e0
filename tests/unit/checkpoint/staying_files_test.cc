// Checkpoints with shards that stay on the hosts of their ps: the chief saves, finds, reads and
// removes them.

#include "common/checkpoint/staying_files.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>

#include "common/base/error.h"
#include "tests/unit/checkpoint/staying_fixture.h"

namespace dtf::checkpoint {
namespace {

using FolderNames = std::vector<std::string>;
using testing::SimulatedCrash;

constexpr uint32_t kStayingPs = 2;

// A process of the chief.
struct Chief {
  Chief(FileSystem& disk, DiskPs& ps, uint64_t incarnation,
        std::vector<std::string> hosts = {"node0", "node1"})
      : files(ps, std::move(hosts)), folder(disk, kFolder, Incarnation{incarnation}, &files) {}
  StayingFiles files;
  CheckpointFolder folder;
};

class StayingFilesTest : public ::testing::Test {
 protected:
  void save(uint64_t step) { saveStaying(chief_.folder, ps_, step, kStayingPs, random_); }
  FolderNames shardsAt(uint32_t ps) {
    FolderNames names;
    for (const FolderEntry& entry : disk_->list(DiskPs::shardsOf(ps))) names.push_back(entry.name);
    return names;
  }
  // Returns whether the chief of `ps_tasks` ps reads the right values.
  bool isRight(Chief& chief) {
    const Latest latest = chief.folder.latestValid();
    if (!latest.found) return false;
    bool right = true;
    for (const VariableInfo& variable : smallModel())
      for (const std::string& name : tensorNames(variable)) {
        const auto count = static_cast<uint64_t>(variable.shape.elements());
        std::vector<float> values(count);
        const WantedPart wanted{name, 0, count, values.data()};
        readParts(*disk_, latest.found->folder, latest.found->manifest, {&wanted, 1}, &chief.files);
        for (uint64_t i = 0; i < count; ++i)
          right = right &&
                  std::bit_cast<uint32_t>(values[i]) ==
                      std::bit_cast<uint32_t>(valueAt(name, i, latest.found->manifest.global_step));
      }
    return right;
  }
  std::filesystem::path fileAt(uint32_t ps, uint32_t shard, uint64_t step) {
    return DiskPs::shardsOf(ps) / readManifest(*disk_, chief_.folder.stepFolder(step)).stays_in /
           shardFileName(shard, kStayingPs);
  }
  void move(const std::filesystem::path& from, const std::filesystem::path& to) {
    makeStaying(*disk_, to.parent_path().parent_path(), to.parent_path().filename().string());
    disk_->create(to)->close();
    disk_->setContents(to, disk_->contents(from));
    disk_->removeFile(from);
  }

  // Copies the manifest as cp -r does.
  void copyManifest(uint64_t from, uint64_t to) {
    const std::filesystem::path copy = chief_.folder.stepFolder(to);
    disk_->makeFolder(copy);
    disk_->create(copy / kManifestFile)->close();
    disk_->setContents(copy / kManifestFile,
                       disk_->contents(chief_.folder.stepFolder(from) / kManifestFile));
  }
  // Ends a prune of step 1 before its trash is removed. Returns the trash.
  std::filesystem::path leaveTrash() {
    for (const uint64_t step : {1, 2}) save(step);
    ps_.loseOne();
    EXPECT_THROW(chief_.folder.prune({.keep = 1}), Error);
    return kFolder / disk_->list(kFolder).front().name;
  }

  std::unique_ptr<testing::SimulatedDisk> disk_ = newDisk();
  DiskPs ps_{*disk_, kStayingPs};
  Random random_{3};
  Chief chief_{*disk_, ps_, 0x1f3a};
};

TEST_F(StayingFilesTest, TheManifestIsTheChiefsAndTheShardsAreThePs) {
  save(5);
  EXPECT_EQ(disk_->list(kFolder / "step-5").size(), 1u);
  EXPECT_EQ(shardsAt(0), FolderNames{"step-5-1f3a.1"});
  EXPECT_EQ(shardsAt(1), FolderNames{"step-5-1f3a.1"});
  EXPECT_TRUE(isRight(chief_));
  EXPECT_EQ(
      FolderNames(ps_.calls().begin(), ps_.calls().begin() + 2),
      (FolderNames{"find shard-0-of-2.safetensors at 0", "find shard-1-of-2.safetensors at 1"}))
      << "each its own";
}

TEST_F(StayingFilesTest, AFileIsReadFromWhicheverPsHasIt) {
  save(5);
  move(fileAt(0, 0, 5), DiskPs::shardsOf(1) / "aside" / "a");
  move(fileAt(1, 1, 5), fileAt(0, 1, 5));
  move(DiskPs::shardsOf(1) / "aside" / "a", fileAt(1, 0, 5));
  EXPECT_TRUE(isRight(chief_));
  DiskPs three(*disk_, 3);
  Chief another(*disk_, three, 2, {"node0", "node1", "node2"});
  EXPECT_TRUE(isRight(another)) << "one more ps, with nothing";
}

TEST_F(StayingFilesTest, WhatNoneHasIsNamedWithTheHosts) {
  save(4);
  save(5);
  move(fileAt(1, 1, 5), "/elsewhere/here/a");
  const Latest latest = chief_.folder.latestValid();
  ASSERT_EQ(latest.rejected.size(), 1u);
  EXPECT_EQ(
      latest.rejected[0].problems.at(0).reason,
      "shard-1-of-2.safetensors was written by the host of shard 1, on node1, and none of ps/0 "
      "on node0, ps/1 on node1 has it in shards/step-5-1f3a.2 below its run_dir: start one "
      "of them where the file is, or copy it there");
  EXPECT_EQ(latest.found->manifest.global_step, 4u) << "the one before is used";
}

TEST_F(StayingFilesTest, DamageIsSaidInThePsWords) {
  save(5);
  std::string bytes = disk_->contents(fileAt(1, 1, 5));
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  disk_->setContents(fileAt(1, 1, 5), bytes);
  const Latest latest = chief_.folder.latestValid();
  EXPECT_FALSE(latest.found);
  EXPECT_NE(latest.rejected.at(0).problems.at(0).reason.find("the data are damaged"),
            std::string::npos);
}

TEST_F(StayingFilesTest, WithoutThePsItIsSaidWhereTheFilesAre) {
  save(5);
  CheckpointFolder reader(*disk_, kFolder, Incarnation{9});
  const Latest latest = reader.latestValid();
  EXPECT_FALSE(latest.found);
  EXPECT_NE(latest.rejected.at(0).problems.at(1).reason.find("stays with ps/1 on node1"),
            std::string::npos);
}

TEST_F(StayingFilesTest, WhatGoesIsRemovedEverywhere) {
  for (const uint64_t step : {1, 2, 3}) save(step);
  chief_.folder.prune({.keep = 2});
  EXPECT_EQ(shardsAt(0), (FolderNames{"step-2-1f3a.2", "step-3-1f3a.3"}));
  EXPECT_EQ(shardsAt(1), shardsAt(0));
  const std::string attempt = chief_.folder.beginAttempt(4);
  makeStaying(*disk_, DiskPs::shardsOf(0), stayingName(attempt));
  chief_.folder.abandon();
  EXPECT_EQ(shardsAt(0).size(), 2u);
}

// The ps is lost at that moment: the chief's own folder stays as a record of the removal.
TEST_F(StayingFilesTest, WhatAPsCouldNotBeToldIsToldByTheNextChief) {
  for (const uint64_t step : {1, 2, 3}) save(step);
  ps_.loseOne();
  EXPECT_THROW(chief_.folder.prune({.keep = 2}), Error);
  EXPECT_EQ(chief_.folder.steps(), (std::vector<uint64_t>{2, 3}));
  EXPECT_EQ(shardsAt(1).size(), 3u);
  Chief next(*disk_, ps_, 2);
  EXPECT_EQ(next.folder.sweepStale(), 1u);
  EXPECT_EQ(shardsAt(1), (FolderNames{"step-2-1f3a.2", "step-3-1f3a.3"}));
}

TEST_F(StayingFilesTest, ACopyOfAManifestIsNoCheckpointAndItsRemovalTakesNoShards) {
  for (const uint64_t step : {5, 6}) save(step);
  copyManifest(6, 4);
  copyManifest(6, 7);
  EXPECT_EQ(chief_.folder.prune({.keep = 2}), std::vector<uint64_t>{4});
  EXPECT_EQ(shardsAt(0), (FolderNames{"step-5-1f3a.1", "step-6-1f3a.2"}));
  EXPECT_EQ(shardsAt(1), shardsAt(0));
  EXPECT_TRUE(isRight(chief_));
}

TEST_F(StayingFilesTest, TrashIsLeftWhileItsManifestCanNotBeRead) {
  const std::filesystem::path manifest = leaveTrash() / kManifestFile;
  const std::string bytes = disk_->contents(manifest);
  disk_->removeFile(manifest);
  disk_->makeFolder(manifest);  // can't be read
  EXPECT_EQ(chief_.folder.sweepStale(), 0u);
  EXPECT_TRUE(disk_->exists(manifest));
  EXPECT_EQ(shardsAt(0).size(), 2u);
  disk_->removeFolder(manifest);
  disk_->create(manifest)->close();
  disk_->setContents(manifest, bytes);
  EXPECT_EQ(chief_.folder.sweepStale(), 1u);
  EXPECT_EQ(shardsAt(0), FolderNames{"step-2-1f3a.2"});
}

TEST_F(StayingFilesTest, TrashOfADamagedManifestGoes) {
  disk_->setContents(leaveTrash() / kManifestFile, "damaged");
  EXPECT_EQ(chief_.folder.sweepStale(), 1u);
  EXPECT_EQ(disk_->list(kFolder).size(), 1u);
}

// The rename can't be synced, and can't be undone.
TEST_F(StayingFilesTest, ACheckpointThatStaysVisibleKeepsItsShards) {
  save(3);
  size_t begin = disk_->operations().size();
  const Random same = random_;  // so the operations are the same
  save(4);
  const auto& operations = disk_->operations();
  const auto rename = std::find(operations.begin() + static_cast<std::ptrdiff_t>(begin),
                                operations.end(), testing::SimulatedDisk::Op::kRename);
  const size_t at = static_cast<size_t>(rename - operations.begin()) - begin;
  begin = operations.size();
  random_ = same;
  disk_->failAt(begin + at + 1, EIO);
  disk_->failAt(begin + at + 2, EIO);
  EXPECT_THROW(save(5), Error);
  EXPECT_EQ(chief_.folder.steps(), (std::vector<uint64_t>{3, 4, 5}));
  EXPECT_EQ(shardsAt(0).size(), 3u);
  EXPECT_TRUE(isRight(chief_));
  EXPECT_EQ(chief_.folder.latestValid().found->manifest.global_step, 5u);
}

TEST_F(StayingFilesTest, AnAttemptWhoseNameCanNotBeMadeDurableIsNotUnderWay) {
  save(5);
  disk_->failAll(testing::SimulatedDisk::Op::kSyncFolder, EIO);
  EXPECT_THROW(chief_.folder.beginAttempt(6), Error);
  disk_->heal();
  EXPECT_EQ(chief_.folder.sweepStale(), 1u);
  save(7);
  EXPECT_EQ(chief_.folder.steps(), (std::vector<uint64_t>{5, 7}));
  EXPECT_EQ(disk_->list(kFolder).size(), 2u) << "nothing is left of the attempt";
}

TEST_F(StayingFilesTest, AJobThatNoLongerLetsThemStaySaysOnceThatTheyAreLeft) {
  for (const uint64_t step : {1, 2}) save(step);
  CheckpointFolder gathering(*disk_, kFolder, Incarnation{2});
  for (const uint64_t step : {3, 4}) checkpoint::save(*disk_, gathering, step, kStayingPs, random_);
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(gathering.prune({.keep = 1}), (std::vector<uint64_t>{1, 2, 3}));
  const std::string said = ::testing::internal::GetCapturedStderr();
  const size_t first = said.find("event=shards_left folder=shards/step-1-1f3a.1 ");
  ASSERT_NE(first, std::string::npos) << said;
  EXPECT_EQ(said.find("event=shards_left", first + 1), std::string::npos) << said;
  EXPECT_EQ(shardsAt(0).size(), 2u);
}

// All hosts crash at once, at each operation of a save and of the removals after it. The newest
// checkpoint is the previous or the new one, whole, and the next process leaves nothing behind.
TEST_F(StayingFilesTest, AfterACrashAtAnyOperationAWholeOneIsFoundAndNothingIsLeft) {
  constexpr size_t kOperationsMax = 500;
  bool crashed = true;
  for (size_t at = 0; crashed; ++at) {
    ASSERT_LT(at, kOperationsMax);
    for (const bool power_cut : {false, true}) {
      SCOPED_TRACE(std::to_string(at) + (power_cut ? ", power cut" : ""));
      disk_ = newDisk();
      DiskPs ps(*disk_, kStayingPs);
      Random random(at);
      Chief dying(*disk_, ps, 0xabc);
      for (const uint64_t step : {10, 20, 30})
        saveStaying(dying.folder, ps, step, kStayingPs, random);
      disk_->crashAt(disk_->operations().size() + at);
      uint64_t promised = 30;
      crashed = false;
      try {
        saveStaying(dying.folder, ps, 40, kStayingPs, random);
        promised = 40;
        dying.folder.prune({.keep = 3});
      } catch (const SimulatedCrash&) {
        crashed = true;
      }
      if (power_cut)
        disk_->powerCut(at);
      else
        disk_->restart();
      Chief next(*disk_, ps, 0xdef);
      next.folder.sweepStale();
      const Latest latest = next.folder.latestValid();
      ASSERT_TRUE(latest.found);
      EXPECT_GE(latest.found->manifest.global_step, promised);
      EXPECT_TRUE(latest.rejected.empty());
      EXPECT_TRUE(isRight(next));
      saveStaying(next.folder, ps, 50, kStayingPs, random);
      next.folder.prune({.keep = 2});
      FolderNames kept;
      for (const uint64_t step : next.folder.steps())
        kept.push_back(readManifest(*disk_, next.folder.stepFolder(step)).stays_in);
      EXPECT_EQ(kept.size(), 2u);
      for (const uint32_t one : {0u, 1u}) EXPECT_EQ(shardsAt(one), kept);
      EXPECT_EQ(disk_->list(kFolder).size(), 2u);
    }
  }
}

}  // namespace
}  // namespace dtf::checkpoint
