#include "common/checkpoint/checkpoint_folder.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "common/base/error.h"
#include "tests/unit/checkpoint/checkpoint_fixture.h"

namespace dtf::checkpoint {
namespace {

class CheckpointFolderTest : public ::testing::Test {
 protected:
  // run_seconds of a step is step / 3: one hour is 10800 steps.
  void saveAll(std::initializer_list<uint64_t> steps) {
    for (const uint64_t step : steps) save(*disk_, folder_, step, 2, random_);
  }
  void breakManifest(uint64_t step) {
    disk_->setContents(folder_.stepFolder(step) / kManifestFile, "damaged");
  }
  void flipLastByte(uint64_t step) {
    const auto file = folder_.stepFolder(step) / shardFileName(0, 2);
    std::string bytes = disk_->contents(file);
    bytes.back() = static_cast<char>(bytes.back() ^ 1);
    disk_->setContents(file, bytes);
  }
  using Steps = std::vector<uint64_t>;

  Random random_{3};
  std::unique_ptr<testing::SimulatedDisk> disk_ = newDisk();
  CheckpointFolder folder_{*disk_, kFolder, Incarnation{0x1f3a}};
};

TEST_F(CheckpointFolderTest, AnEmptyOrMissingFolderHoldsNothing) {
  EXPECT_FALSE(folder_.latestValid().found);
  CheckpointFolder missing(*disk_, "/run/none", Incarnation{1});
  EXPECT_FALSE(missing.latestValid().found);
  EXPECT_EQ(missing.sweepStale(), 0u);
  EXPECT_TRUE(missing.prune({}).empty());
  missing.prepare();
  missing.prepare();
  EXPECT_TRUE(disk_->exists("/run/none"));
}

TEST_F(CheckpointFolderTest, AnAttemptIsInvisibleUntilItIsCommitted) {
  saveAll({5});
  const std::string name = folder_.beginAttempt(6);
  EXPECT_EQ(name, "step-6.tmp-1f3a.2");
  const auto values = cutModel(smallModel(), 1, 6, random_);
  const ShardFile shard = writeShard(*disk_, kFolder / name, 0, 1, values[0].parts);
  EXPECT_EQ(folder_.latestValid().found->manifest.global_step, 5u);
  EXPECT_EQ(folder_.sweepStale(), 0u) << "the attempt under way is not stale";
  EXPECT_EQ(folder_.commit(manifestFor(smallModel(), 6, {shard})), CommitOutcome::kCommitted);
  const Latest latest = folder_.latestValid();
  EXPECT_EQ(latest.found->manifest, manifestFor(smallModel(), 6, {shard}));
  EXPECT_EQ(latest.found->folder, kFolder / "step-6");
}

TEST_F(CheckpointFolderTest, AFolderThatSomebodyRemovedIsMadeAnew) {
  saveAll({5, 6});
  for (const uint64_t step : {5, 6}) {
    for (const FolderEntry& file : disk_->list(folder_.stepFolder(step)))
      disk_->removeFile(folder_.stepFolder(step) / file.name);
    disk_->removeFolder(folder_.stepFolder(step));
  }
  disk_->removeFolder(kFolder);
  saveAll({6});
  EXPECT_EQ(folder_.latestValid().found->manifest.global_step, 6u);
  EXPECT_EQ(folder_.steps(), Steps{6});
}

TEST_F(CheckpointFolderTest, TheFoldersAboveOneThatSomebodyRemovedAreMadeAnewToo) {
  CheckpointFolder deep(*disk_, kFolder / "run" / "checkpoints", Incarnation{1});
  deep.prepare();
  EXPECT_TRUE(disk_->exists(kFolder / "run" / "checkpoints"));
  disk_->powerCut(1);
  EXPECT_TRUE(disk_->exists(kFolder / "run" / "checkpoints")) << "durably";
}

TEST_F(CheckpointFolderTest, SetAsideKeepsAllUnderAnotherNameAndIsDurable) {
  EXPECT_FALSE(folder_.setAside()) << "nothing to keep";
  saveAll({5, 6});
  EXPECT_EQ(folder_.setAside(), kFolder.string() + ".old-1");
  EXPECT_EQ(folder_.steps(), Steps{});
  saveAll({7});
  EXPECT_EQ(folder_.setAside(), kFolder.string() + ".old-2");
  disk_->powerCut(1);
  CheckpointFolder first(*disk_, kFolder.string() + ".old-1", Incarnation{1});
  EXPECT_EQ(first.latestValid().found->manifest.global_step, 6u);
  CheckpointFolder second(*disk_, kFolder.string() + ".old-2", Incarnation{1});
  EXPECT_EQ(second.latestValid().found->manifest.global_step, 7u);
  EXPECT_FALSE(folder_.latestValid().found);
}

TEST_F(CheckpointFolderTest, NumbersOrderStepsNotTheirText) {
  saveAll({9, 10, 100});
  disk_->makeFolder(kFolder / "step-0100");
  disk_->makeFolder(kFolder / "step-x");
  disk_->makeFolder(kFolder / "step-99999999999999999999999");
  EXPECT_EQ(folder_.steps(), (Steps{9, 10, 100}));
  EXPECT_EQ(folder_.latestValid().found->manifest.global_step, 100u);
}

TEST_F(CheckpointFolderTest, AShardThatIsMissingOrOfAnotherSizeIsNotCommitted) {
  for (const bool missing : {true, false}) {
    const auto attempt = kFolder / folder_.beginAttempt(6);
    const auto values = cutModel(smallModel(), 2, 6, random_);
    std::vector<ShardFile> shards;
    for (uint32_t ps = 0; ps < 2; ++ps)
      shards.push_back(writeShard(*disk_, attempt, ps, 2, values[ps].parts));
    if (missing)
      disk_->removeFile(attempt / shards[1].file);
    else
      disk_->setContents(attempt / shards[1].file, "short");
    try {
      folder_.commit(manifestFor(smallModel(), 6, shards));
      FAIL() << "it was committed";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kCannotWrite);
      EXPECT_NE(error.message().find("shard-1-of-2"), std::string::npos) << error.message();
    }
    folder_.abandon();
    EXPECT_TRUE(folder_.steps().empty());
  }
}

TEST_F(CheckpointFolderTest, APoisonedAttemptIsNotCommittedAgain) {
  const auto attempt = kFolder / folder_.beginAttempt(6);
  const auto values = cutModel(smallModel(), 1, 6, random_);
  const Manifest manifest =
      manifestFor(smallModel(), 6, {writeShard(*disk_, attempt, 0, 1, values[0].parts)});
  disk_->failAll(testing::SimulatedDisk::Op::kSync, 5);
  EXPECT_THROW(folder_.commit(manifest), Error);
  disk_->heal();
  EXPECT_DEATH(folder_.commit(manifest), "poisoned");
}

TEST_F(CheckpointFolderTest, AStepThatIsThereWholeStays) {
  saveAll({6});
  const std::string before = disk_->contents(kFolder / "step-6" / kManifestFile);
  CheckpointFolder later(*disk_, kFolder, Incarnation{2});
  EXPECT_EQ(save(*disk_, later, 6, 3, random_), CommitOutcome::kKeptExisting);
  EXPECT_EQ(disk_->contents(kFolder / "step-6" / kManifestFile), before);
  EXPECT_EQ(disk_->list(kFolder).size(), 1u) << "the attempt is gone";
}

TEST_F(CheckpointFolderTest, AStepThatIsThereDamagedIsReplaced) {
  saveAll({5, 6});
  breakManifest(6);
  CheckpointFolder later(*disk_, kFolder, Incarnation{2});
  EXPECT_EQ(save(*disk_, later, 6, 3, random_), CommitOutcome::kCommitted);
  EXPECT_EQ(later.latestValid().found->manifest.shards.size(), 3u);
  EXPECT_EQ(disk_->list(kFolder).size(), 2u);
}

// The fsync after the rename fails, and the attempt is renamed back and removed. Its final name may
// have reached the disk all the same.
TEST_F(CheckpointFolderTest, APowerCutAfterAFailedAttemptShowsNothingHalfRemoved) {
  saveAll({5});
  const size_t operations = disk_->operations().size();
  for (size_t failing = 0; failing < operations; ++failing) {
    for (uint64_t seed = 0; seed < 20; ++seed) {
      const auto disk = newDisk();
      CheckpointFolder folder(*disk, kFolder, Incarnation{1});
      save(*disk, folder, 5, 2, random_);
      disk->failAt(disk->operations().size() + failing, EIO);
      try {
        save(*disk, folder, 6, 2, random_);
      } catch (const Error&) {
      }
      disk->powerCut(seed);
      CheckpointFolder later(*disk, kFolder, Incarnation{2});
      EXPECT_TRUE(later.latestValid().rejected.empty())
          << "operation " << failing << " fails, power cut " << seed;
    }
  }
}

TEST_F(CheckpointFolderTest, SweepingRemovesWhatTheDeadLeftAndNothingElse) {
  saveAll({5});
  for (const char* name : {"step-6.tmp-aa.1", "step-7.trash-bb.2", "step-8.keep", "notes"}) {
    disk_->makeFolder(kFolder / name);
    disk_->create(kFolder / name / "x");
  }
  EXPECT_EQ(folder_.sweepStale(), 2u);
  std::vector<std::string> left;
  for (const FolderEntry& entry : disk_->list(kFolder)) left.push_back(entry.name);
  EXPECT_EQ(left, (std::vector<std::string>{"notes", "step-5", "step-8.keep"}));
}

TEST_F(CheckpointFolderTest, PruneKeepsTheNewest) {
  saveAll({1, 2, 3, 4, 5, 6, 7});
  EXPECT_EQ(folder_.prune({.keep = 0, .keep_every_hours = 0}), Steps{}) << "0 keeps all";
  EXPECT_EQ(folder_.prune({}), (Steps{1, 2})) << "TensorFlow's default of 5";
  EXPECT_EQ(folder_.prune({.keep = 2, .keep_every_hours = 0, .also = {3}}), (Steps{4, 5}))
      << "the best one stays, too";
  EXPECT_EQ(folder_.prune({.keep = 2, .keep_every_hours = 0}), Steps{3});
  EXPECT_EQ(folder_.steps(), (Steps{6, 7}));
  EXPECT_EQ(disk_->list(kFolder).size(), 2u);
}

TEST_F(CheckpointFolderTest, PruneKeepsTheFirstOfEverySoManyHours) {
  const uint64_t hour = 10'800;
  const KeepRule rule{.keep = 1, .keep_every_hours = 2};
  Steps removed;
  // Every half hour for nine hours, pruned after each as a chief does it.
  for (uint64_t i = 1; i <= 18; ++i) {
    saveAll({i * hour / 2});
    for (const uint64_t step : folder_.prune(rule)) removed.push_back(step);
  }
  EXPECT_EQ(folder_.steps(), (Steps{2 * hour, 4 * hour, 6 * hour, 8 * hour, 9 * hour}));
  EXPECT_EQ(removed.size(), 13u);
  // The decision depends only on the folder: a new process decides the same.
  CheckpointFolder later(*disk_, kFolder, Incarnation{2});
  EXPECT_EQ(later.prune(rule), Steps{});
}

TEST_F(CheckpointFolderTest, PruneNeverRemovesTheLastWholeOne) {
  saveAll({1, 2, 3, 4, 5});
  for (const uint64_t step : {3, 4, 5}) breakManifest(step);
  // By a process that has not seen them written.
  CheckpointFolder later(*disk_, kFolder, Incarnation{2});
  EXPECT_EQ(later.prune({.keep = 1, .keep_every_hours = 0}), Steps{1});
  EXPECT_EQ(later.steps(), (Steps{2, 3, 4, 5}));
  EXPECT_EQ(later.latestValid().found->manifest.global_step, 2u);
}

TEST_F(CheckpointFolderTest, PruneNeverRemovesTheLastWholeOneThoughOnlyItsBytesTell) {
  saveAll({1, 2, 3});
  for (const uint64_t step : {2, 3}) flipLastByte(step);
  CheckpointFolder later(*disk_, kFolder, Incarnation{2});
  EXPECT_EQ(later.prune({.keep = 2, .keep_every_hours = 0}), Steps{}) << "by its size 3 is whole";
  EXPECT_EQ(later.steps(), (Steps{1, 2, 3}));
}

// Checkpoints that the restore skipped still exist beside the new ones for a while.
TEST_F(CheckpointFolderTest, ADamagedOneTakesNoPlaceAndIsNotReadAgain) {
  saveAll({10, 20, 30});
  for (const uint64_t step : {20, 30}) flipLastByte(step);
  CheckpointFolder later(*disk_, kFolder, Incarnation{2});
  ASSERT_EQ(later.latestValid().found->manifest.global_step, 10u);
  const KeepRule rule{.keep = 2, .keep_every_hours = 0};
  save(*disk_, later, 11, 2, random_);
  EXPECT_EQ(later.prune(rule), Steps{});
  EXPECT_EQ(later.steps(), (Steps{10, 11, 20, 30}));
  // With their bytes restored, a new check would find them whole.
  for (const uint64_t step : {20, 30}) flipLastByte(step);
  save(*disk_, later, 12, 2, random_);
  EXPECT_EQ(later.prune(rule), Steps{10});
  EXPECT_EQ(later.steps(), (Steps{11, 12, 20, 30}));
  save(*disk_, later, 31, 2, random_);
  save(*disk_, later, 32, 2, random_);
  EXPECT_EQ(later.prune(rule), (Steps{11, 12, 20, 30})) << "gone once they are old";
  EXPECT_EQ(later.steps(), (Steps{31, 32}));
}

// On a real disk, once, with the sizes that verification sees there.
TEST(CheckpointFolderReal, WorksOnTheKernelsFileSystem) {
  namespace fs = std::filesystem;
  std::string pattern = (fs::temp_directory_path() / "dtf-ckpt-XXXXXX").string();
  const fs::path root = ::mkdtemp(pattern.data());
  CheckpointFolder folder(realFileSystem(), root / "checkpoints", Incarnation{1});
  folder.prepare();
  Random random(1);
  for (const uint64_t step : {1, 2, 3})
    EXPECT_EQ(save(realFileSystem(), folder, step, 3, random), CommitOutcome::kCommitted);
  EXPECT_EQ(folder.prune({.keep = 2, .keep_every_hours = 0}), std::vector<uint64_t>{1});
  const Latest latest = folder.latestValid();
  ASSERT_TRUE(latest.found);
  EXPECT_TRUE(allIsRight(realFileSystem(), *latest.found));
  EXPECT_EQ(latest.found->manifest.global_step, 3u);
  fs::remove_all(root);
}

}  // namespace
}  // namespace dtf::checkpoint
