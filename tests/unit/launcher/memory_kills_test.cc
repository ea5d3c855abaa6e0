#include "launcher/memory_kills.h"

#include <gtest/gtest.h>

#include <csignal>
#include <fstream>

#include "tests/support/process.h"

namespace dtf::launcher {

namespace {

class MemoryKillsTest : public ::testing::Test {
 protected:
  void write(const std::string& text) { std::ofstream(path_) << text; }
  // Writes the kernel's file with `kills` in it.
  void count(int kills) {
    write("nr_free_pages 12\noom_kill " + std::to_string(kills) + "\nunevictable_pgs_culled 1\n");
  }

  const testing::TemporaryFolder folder_;
  const std::filesystem::path path_ = std::filesystem::path(folder_.path()) / "vmstat";
  ManualClock clock_;
};

}  // namespace

TEST_F(MemoryKillsTest, ASigkillIsTheKernelsWhenItsCountHasRisen) {
  count(3);
  MemoryKills kills(clock_, path_);
  EXPECT_FALSE(kills.explained({0, SIGKILL}).memory_ran_out);
  count(4);
  EXPECT_FALSE(kills.explained({0, SIGSEGV}).memory_ran_out);
  EXPECT_FALSE(kills.explained({137, 0}).memory_ran_out);
  const ExitStatus status = kills.explained({0, SIGKILL});
  EXPECT_TRUE(status.memory_ran_out);
  EXPECT_EQ(
      status.text(),
      "was killed by SIGKILL (signal 9), probably by the kernel, for lack of memory: see dmesg");
  EXPECT_FALSE(kills.explained({0, SIGKILL}).memory_ran_out) << "it has been told of";
}

TEST_F(MemoryKillsTest, TwoTasksThatAreKilledAtOnceAreBothExplained) {
  count(0);
  MemoryKills kills(clock_, path_);
  count(2);
  EXPECT_TRUE(kills.explained({0, SIGKILL}).memory_ran_out);
  EXPECT_TRUE(kills.explained({0, SIGKILL}).memory_ran_out);
  EXPECT_FALSE(kills.explained({0, SIGKILL}).memory_ran_out);
}

TEST_F(MemoryKillsTest, AKillOfLongAgoWasSomebodyElses) {
  count(0);
  MemoryKills kills(clock_, path_);
  count(1);
  kills.look();
  clock_.advance(MemoryKills::kEndWithin + std::chrono::seconds(1));
  EXPECT_FALSE(kills.explained({0, SIGKILL}).memory_ran_out);
}

TEST_F(MemoryKillsTest, WhereTheKernelDoesNotTellNothingIsSaid) {
  MemoryKills kills(clock_, path_);
  EXPECT_FALSE(kills.explained({0, SIGKILL}).memory_ran_out);
  write("nr_free_pages many\noom_kill 4\n");
  EXPECT_FALSE(kills.explained({0, SIGKILL}).memory_ran_out);
}

}  // namespace dtf::launcher
