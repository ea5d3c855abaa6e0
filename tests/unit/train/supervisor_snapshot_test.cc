// When the supervisor takes snapshots, and its actions when it can't take one.

#include "tests/unit/train/supervisor_fixture.h"

namespace dtf::train {
namespace {

// Runs the last save that was begun, when the test calls run().
struct LaterRunner final : SaveRunner {
  void start(std::function<void()> save) override { work = std::move(save); }
  void wait() override {}
  void pause(Duration) override {}
  void run() {
    if (const auto begun = std::exchange(work, nullptr)) begun();
  }
  std::function<void()> work;
};

class SnapshotTest : public SupervisorTest {
 protected:
  ~SnapshotTest() override { supervisor_.reset(); }  // before its runner

  void begin(double every_seconds, uint64_t every_steps) {
    snapshot_every_steps_ = 5;
    runner_ = &later_;
    start(kSync, every_seconds, every_steps);
    checkpointer_->restore();
    ps_.setHoldsValues();
    ps_.calls();
  }
  // Moves the ps from `first` to `last`, one step at a time. Returns the requests for snapshots
  // and checkpoints that the ps received meanwhile.
  std::vector<std::string> keptUpTo(uint64_t first, uint64_t last) {
    std::vector<std::string> kept;
    for (uint64_t step = first; step <= last; ++step) {
      answer(step);
      later_.run();
      for (std::string& call : ps_.calls())
        if (call.starts_with("snapshot") || call.starts_with("save"))
          kept.push_back(call.substr(0, call.find('.')));
    }
    return kept;
  }

  LaterRunner later_;
};

TEST_F(SnapshotTest, EachMultipleIsKeptButWhereACheckpointIsDue) {
  begin(0, 15);
  EXPECT_EQ(keptUpTo(1, 22), (std::vector<std::string>{"snapshot 5", "snapshot 10 keep 5",
                                                       "save step-15", "snapshot 20 keep 10"}));
  const SnapshotStatus status = supervisor_->snapshotStatus();
  EXPECT_EQ(status.kept, 3u);
  EXPECT_EQ(status.last_step, 20u);
  EXPECT_EQ(status.bytes, 64u);
  EXPECT_GE(status.longest_stall, 0.005);
  EXPECT_EQ(end(), (SavedSteps{15}));
}

TEST_F(SnapshotTest, AMemoryThatIsTooSmallIsGivenUpAndCheckpointsGoOn) {
  begin(0, 15);
  ps_.fail("snapshot", Error(ErrorCode::kCannotWrite, "a snapshot takes 3 GiB"));
  EXPECT_EQ(keptUpTo(1, 32),
            (std::vector<std::string>{"snapshot 5", "save step-15", "save step-30"}));
  EXPECT_EQ(supervisor_->snapshotStatus().off, "a snapshot takes 3 GiB");
  EXPECT_TRUE(supervisor_->status().degraded.empty());
}

// The workers leave then, so nobody could repeat the updates that a ps loses.
TEST_F(SnapshotTest, WithoutCheckpointsTheEndIsKeptInMemory) {
  checkpoints_ = false;
  begin(0, 0);
  EXPECT_EQ(keptUpTo(1, 7), (std::vector<std::string>{"snapshot 5"}));
  ps_.fail("snapshot", kPsIsAway);
  supervisor_->saveAtRest();
  EXPECT_EQ(ps_.calls().back(), "snapshot 7 keep 5") << "again on a connection that has healed";
  supervisor_->saveAtRest();
  EXPECT_EQ(supervisor_->snapshotStatus().kept, 2u) << "it is there already";
}

TEST_F(SnapshotTest, AfterAPsWasAwayTheNextOneIsTaken) {
  begin(0, 0);
  ps_.fail("snapshot", kPsIsAway);
  ps_.fail("startCut", kPsIsAway);
  EXPECT_EQ(keptUpTo(1, 16), (std::vector<std::string>{"snapshot 10", "snapshot 15"}));
}

}  // namespace
}  // namespace dtf::train
