#include "launcher/snapshot_guard.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

namespace dtf::launcher {
namespace {

namespace fs = std::filesystem;

// Leaves the files of a ps that was killed while it wrote, in the job's own folder.
void leaveSnapshots(const fs::path& folder) {
  const fs::path cut = folder / "ps-1" / "cut-1-20.tmp";
  fs::create_directories(cut);
  fs::permissions(folder, fs::perms::owner_all);
  std::ofstream(cut / "shard-0-of-1.safetensors") << "half of it";
}

TEST(SnapshotGuard, RemovesWhatALaunchLeavesAndWhatAJobWithoutSnapshotsHasNoUseFor) {
  cluster::JobSpec job;
  job.job = "snapshot_guard_test";
  job.run_dir = "/nowhere/" + std::to_string(::getpid());
  cluster::JobSpec other = job;
  other.run_dir += "-other";
  const fs::path folder = checkpoint::sharedMemoryPlace(job.job, job.run_dir).folder;
  const fs::path others = checkpoint::sharedMemoryPlace(other.job, other.run_dir).folder;
  leaveSnapshots(folder);
  leaveSnapshots(others);
  {
    const SnapshotGuard guard(job);
    EXPECT_FALSE(fs::exists(folder));
    leaveSnapshots(folder);
  }
  EXPECT_FALSE(fs::exists(folder));
  EXPECT_TRUE(fs::exists(others)) << "of a job in another run directory";
  fs::remove_all(others);
}

// A killed launcher has removed nothing. One that can't start, or whose job failed, keeps the
// snapshots.
TEST(SnapshotGuard, KeepsWhatTheNextLaunchGoesOnFrom) {
  cluster::JobSpec job;
  job.job = "snapshot_guard_test";
  job.run_dir = "/nowhere/kept-" + std::to_string(::getpid());
  job.durability = {cluster::Durability::kSnapshot, 10};
  const fs::path folder = checkpoint::sharedMemoryPlace(job.job, job.run_dir).folder;
  leaveSnapshots(folder);
  {
    const SnapshotGuard refused(job);
    EXPECT_TRUE(fs::exists(folder)) << "of a launch before";
  }
  EXPECT_TRUE(fs::exists(folder));
  {
    SnapshotGuard never_ready(job), failed(job);
    EXPECT_NE(never_ready.endWith(Outcome::kInterrupted, false), "");
    EXPECT_NE(failed.endWith(Outcome::kFailed, true).find(folder), std::string::npos);
  }
  EXPECT_TRUE(fs::exists(folder));
}

TEST(SnapshotGuard, RemovesThoseOfAJobThatIsOver) {
  cluster::JobSpec job;
  job.job = "snapshot_guard_test";
  job.run_dir = "/nowhere/over-" + std::to_string(::getpid());
  job.durability = {cluster::Durability::kSnapshot, 10};
  const fs::path folder = checkpoint::sharedMemoryPlace(job.job, job.run_dir).folder;
  for (const Outcome outcome : {Outcome::kDone, Outcome::kStopped, Outcome::kInterrupted}) {
    leaveSnapshots(folder);
    {
      SnapshotGuard guard(job);
      EXPECT_EQ(guard.endWith(outcome, true), "");
    }
    EXPECT_FALSE(fs::exists(folder)) << outcomeName(outcome);
  }
  SnapshotGuard guard(job);
  EXPECT_EQ(guard.endWith(Outcome::kFailed, true), "") << "there is none";
}

}  // namespace
}  // namespace dtf::launcher
