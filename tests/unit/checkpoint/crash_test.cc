// The most important promise: whatever happens at any time, the newest valid checkpoint is the
// previous one or the one being written, and it is whole.

#include <gtest/gtest.h>

#include <cerrno>

#include "common/base/error.h"
#include "tests/support/repetitions.h"
#include "tests/unit/checkpoint/checkpoint_fixture.h"

namespace dtf::checkpoint {
namespace {

using testing::SimulatedCrash;
using testing::SimulatedDisk;
using Op = SimulatedDisk::Op;

constexpr uint32_t kPsTasks = 2;

// Steps 10, 20 and 30 exist; then step 40 is saved and the oldest goes. `promised` becomes 40 when
// commit() has succeeded: from then on it must survive anything.
void saveAndPrune(SimulatedDisk& disk, CheckpointFolder& folder, uint64_t& promised) {
  Random random(40);
  save(disk, folder, 40, kPsTasks, random);
  promised = 40;
  folder.prune({.keep = 3, .keep_every_hours = 0});
}

std::unique_ptr<SimulatedDisk> diskWithThree() {
  auto disk = newDisk();
  CheckpointFolder folder(*disk, kFolder, Incarnation{0xabc});
  Random random(1);
  for (const uint64_t step : {10, 20, 30}) save(*disk, folder, step, kPsTasks, random);
  return disk;
}

size_t operationsOfSave() {
  const auto disk = diskWithThree();
  const size_t before = disk->operations().size();
  CheckpointFolder folder(*disk, kFolder, Incarnation{0xdef});
  uint64_t promised = 30;
  saveAndPrune(*disk, folder, promised);
  return disk->operations().size() - before;
}

// A new process comes up, sweeps, restores, and saves the next one.
void expectRecovery(SimulatedDisk& disk, uint64_t promised) {
  CheckpointFolder folder(disk, kFolder, Incarnation{0x123});
  const Latest latest = folder.latestValid();
  ASSERT_TRUE(latest.found);
  const uint64_t step = latest.found->manifest.global_step;
  EXPECT_TRUE(step == 40 || (promised == 30 && step == 30)) << step << ", promised " << promised;
  EXPECT_TRUE(latest.rejected.empty()) << latest.rejected.front().problems.front().reason;
  EXPECT_TRUE(allIsRight(disk, *latest.found));
  folder.sweepStale();
  for (const FolderEntry& entry : disk.list(kFolder))
    EXPECT_EQ(entry.name.find('.'), std::string::npos) << entry.name << " is left";
  Random random(50);
  EXPECT_EQ(save(disk, folder, 50, 3, random), CommitOutcome::kCommitted);
  EXPECT_TRUE(allIsRight(disk, *folder.latestValid().found));
}

TEST(CheckpointCrash, AtEveryOperationAndWithEveryLossTheOldOrTheNewOneIsWhole) {
  const size_t operations = operationsOfSave();
  ASSERT_GT(operations, 30u);
  int survived_new = 0;
  int survived_old = 0;
  for (size_t index = 0; index <= operations; ++index) {
    for (uint64_t cut_seed = 0; cut_seed < dtf::testing::repetitions(20u); ++cut_seed) {
      SCOPED_TRACE("operation " + std::to_string(index) + ", power cut " +
                   std::to_string(cut_seed));
      const auto disk = diskWithThree();
      disk->crashAt(disk->operations().size() + index);
      CheckpointFolder folder(*disk, kFolder, Incarnation{0xdef});
      uint64_t promised = 30;
      try {
        saveAndPrune(*disk, folder, promised);
        ASSERT_EQ(index, operations) << "it must have crashed";
      } catch (const SimulatedCrash&) {
      }
      disk->powerCut(cut_seed);
      const auto latest = CheckpointFolder(*disk, kFolder, Incarnation{1}).latestValid();
      ++(latest.found && latest.found->manifest.global_step == 40 ? survived_new : survived_old);
      expectRecovery(*disk, promised);
      if (HasFailure()) return;
    }
  }
  EXPECT_GT(survived_new, dtf::testing::repetitions(100));
  EXPECT_GT(survived_old, dtf::testing::repetitions(100));
}

// The process dies, the machine stays up: nothing unsynced is lost.
TEST(CheckpointCrash, AProcessKilledAtEveryOperationLeavesTheOldOrTheNewOne) {
  const size_t operations = operationsOfSave();
  for (size_t index = 0; index < operations; ++index) {
    SCOPED_TRACE("operation " + std::to_string(index));
    const auto disk = diskWithThree();
    disk->crashAt(disk->operations().size() + index);
    CheckpointFolder folder(*disk, kFolder, Incarnation{0xdef});
    uint64_t promised = 30;
    EXPECT_THROW(saveAndPrune(*disk, folder, promised), SimulatedCrash);
    disk->powerCut(1);  // keeps everything
    expectRecovery(*disk, promised);
    if (HasFailure()) return;
  }
}

// An error at an operation must leave the old checkpoints, at once and after a power cut. The next
// attempt in the folder must succeed.
void expectHarmless(SimulatedDisk& disk, CheckpointFolder& folder, uint64_t promised,
                    uint64_t cut_seed) {
  const Latest latest = folder.latestValid();
  ASSERT_TRUE(latest.found);
  EXPECT_GE(latest.found->manifest.global_step, promised);
  EXPECT_TRUE(latest.rejected.empty());
  for (const uint64_t step : {20, 30})
    EXPECT_TRUE(verifyCheckpoint(disk, folder.stepFolder(step), VerifyDepth::kFull).whole())
        << "step " << step << " was harmed";
  disk.heal();
  Random random(2);
  const CommitOutcome outcome = save(disk, folder, 40, kPsTasks, random);
  EXPECT_EQ(outcome == CommitOutcome::kKeptExisting, promised == 40);
  disk.powerCut(cut_seed);
  const Latest after = CheckpointFolder(disk, kFolder, Incarnation{5}).latestValid();
  ASSERT_TRUE(after.found);
  EXPECT_EQ(after.found->manifest.global_step, 40u);
  EXPECT_TRUE(allIsRight(disk, *after.found));
}

TEST(CheckpointErrors, AnyOperationMayFailOnceAndTheNextAttemptSucceeds) {
  const size_t operations = operationsOfSave();
  for (const int error : {ENOSPC, EIO}) {
    for (size_t index = 0; index < operations; ++index) {
      SCOPED_TRACE("errno " + std::to_string(error) + " at operation " + std::to_string(index));
      const auto disk = diskWithThree();
      disk->failAt(disk->operations().size() + index, error);
      CheckpointFolder folder(*disk, kFolder, Incarnation{0xdef});
      uint64_t promised = 30;
      try {
        saveAndPrune(*disk, folder, promised);
        FAIL() << "the error was swallowed";
      } catch (const Error& failure) {
        EXPECT_EQ(failure.code(), ErrorCode::kCannotWrite);
        EXPECT_NE(failure.message().find("/run/checkpoints"), std::string::npos)
            << failure.message();
      }
      expectHarmless(*disk, folder, promised, /*cut_seed=*/index % 7);
      if (HasFailure()) return;
    }
  }
}

// Until the operator makes room, each attempt fails and the old checkpoints stay.
TEST(CheckpointErrors, AFullDiskHarmsNothingHoweverOftenItIsTried) {
  const auto disk = diskWithThree();
  CheckpointFolder folder(*disk, kFolder, Incarnation{0xdef});
  for (const Op op : {Op::kCreate, Op::kWrite, Op::kMakeFolder, Op::kSync, Op::kClose}) {
    disk->failAll(op, ENOSPC);
    for (uint64_t step = 40; step < 45; ++step) {
      Random random(step);
      EXPECT_THROW(save(*disk, folder, step, kPsTasks, random), Error);
    }
    disk->heal();
    EXPECT_EQ(folder.steps(), (std::vector<uint64_t>{10, 20, 30}));
    EXPECT_EQ(disk->list(kFolder).size(), 3u) << "abandoned attempts are gone";
  }
  uint64_t promised = 30;
  saveAndPrune(*disk, folder, promised);
  EXPECT_EQ(folder.latestValid().found->manifest.global_step, 40u);
}

// Every fsync, also of folders, in turn; then a power cut that keeps nothing unsynced.
TEST(CheckpointErrors, AFailedFsyncIsNeverTakenForSuccess) {
  const size_t operations = operationsOfSave();
  int fsyncs = 0;
  for (size_t index = 0; index < operations; ++index) {
    SCOPED_TRACE("operation " + std::to_string(index));
    const auto disk = diskWithThree();
    const size_t at = disk->operations().size() + index;
    disk->failAt(at, EIO);
    CheckpointFolder folder(*disk, kFolder, Incarnation{0xdef});
    uint64_t promised = 30;
    EXPECT_THROW(saveAndPrune(*disk, folder, promised), Error);
    const Op op = disk->operations()[at];
    if (op != Op::kSync && op != Op::kSyncFolder) continue;
    ++fsyncs;
    if (promised == 30) {
      EXPECT_EQ(folder.steps().back(), 30u) << "what may be lost is not shown";
    }
    disk->powerCut(0);
    expectRecovery(*disk, promised);
    if (HasFailure()) return;
  }
  EXPECT_EQ(fsyncs, 6) << "two shards, manifest, attempt, parent, and the parent of the removal";
}

}  // namespace
}  // namespace dtf::checkpoint
