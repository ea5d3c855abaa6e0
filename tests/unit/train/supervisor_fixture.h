#pragma once

// A supervisor with fake ps and a disk in memory.

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/train/supervisor.h"
#include "tests/support/simulated_disk.h"
#include "tests/unit/train/fake_ps.h"

namespace dtf::train {

using SavedSteps = std::vector<uint64_t>;

inline const Error kPsIsAway(ErrorCode::kUnavailable, "lost ps/0");

class SupervisorTest : public ::testing::Test {
 protected:
  SupervisorTest() {
    disk_.makeFolder(kRunDir);
    disk_.syncFolder("/");
  }

  void start(cluster::ReplicationSpec::Mode mode, double every_seconds, uint64_t every_steps) {
    CheckpointerOptions options;
    options.job = "test";
    options.run_dir = kRunDir;
    options.incarnation = Incarnation{1};
    options.spec = {.every_seconds = every_seconds, .every_steps = every_steps, .keep = 0};
    if (!checkpoints_) options.spec.reset();
    options.snapshots = snapshot_every_steps_ > 0;
    checkpointer_ =
        std::make_unique<Checkpointer>(disk_, clock_, ps_, oneVariable(mode, 1000), options);
    if (goes_on_from_ > 0) {
      checkpointer_->restore();
      ps_.setPosition({goes_on_from_});
      ASSERT_TRUE(checkpointer_->save(Motion::kAtRest));
      ps_.calls();
    }
    is_sync_ = mode == cluster::ReplicationSpec::Mode::kSync;
    supervisor_.emplace(*checkpointer_, SaveSchedule{options.spec, snapshot_every_steps_, waits_},
                        is_sync_ ? replication::CutKind::kAtStep : replication::CutKind::kHeld,
                        clock_, eventsHere(), runner_);
  }

  Supervisor::Events eventsHere() {
    Supervisor::Events events;
    events.on_saved = [this](const SavedCheckpoint& saved) {
      if (on_saved_) on_saved_();
      MutexLock lock(mutex_);
      saved_.push_back(saved.global_step);
    };
    events.on_evaluated_saved = [this](uint64_t step, uint64_t checkpoint) {
      MutexLock lock(mutex_);
      evaluated_.emplace_back(step, checkpoint);
      changed_.notifyAll();
    };
    events.on_went_back = [this](const WentBack& back) {
      MutexLock lock(mutex_);
      went_back_.push_back(back.step);
      changed_.notifyAll();
    };
    events.on_hopeless = [this](const Error& error) {
      MutexLock lock(mutex_);
      hopeless_ = error.message();
      changed_.notifyAll();
    };
    events.on_waiting = [this](const std::string& what, Duration) {
      if (on_waiting_) on_waiting_(what);
    };
    return events;
  }

  // A chief that has saved step 10 and trains on; then its ps is started again.
  void loseThePs() {
    start(kSync, 0, 0);
    checkpointer_->restore();
    ps_.setPosition({10});
    ASSERT_TRUE(checkpointer_->save(Motion::kAtRest));
    answer(17);
    ps_.calls();
    ps_.setHeld({});
  }
  void awaitEnd() {
    MutexLock lock(mutex_);
    while (went_back_.empty() && hopeless_.empty()) changed_.wait(mutex_);
  }

  // Simulates the reply to a push; the job is at `step` now.
  void answer(uint64_t step) {
    ps_.setPosition({step});
    replication::StepState state;
    state.global_step = step;
    state.next_step = step;
    supervisor_->onStep(state);
  }
  void answer(uint64_t first, uint64_t last) {
    for (uint64_t step = first; step <= last; ++step) answer(step);
  }

  // Waits until `saved` checkpoints have been saved and `failed` have failed.
  void expectTried(uint64_t saved, uint64_t failed = 0) {
    const SystemClock real;
    const TimePoint deadline = real.now() + std::chrono::seconds(20);
    CheckpointStatus status = supervisor_->status();
    while (status.saved + status.failed < saved + failed && real.now() < deadline) {
      std::this_thread::yield();
      status = supervisor_->status();
    }
    EXPECT_EQ(status.saved, saved);
    EXPECT_EQ(status.failed, failed);
  }

  // Returns once it has ended: nothing is under way any more.
  SavedSteps end() {
    supervisor_.reset();
    MutexLock lock(mutex_);
    return saved_;
  }

  std::function<void()> on_saved_;
  std::function<void(const std::string& what)> on_waiting_;
  ManualClock clock_;
  testing::SimulatedDisk disk_;
  FakePs ps_{disk_, clock_};
  bool is_sync_ = true;
  bool checkpoints_ = true;
  uint64_t snapshot_every_steps_ = 0;
  SaveWaits waits_;
  uint64_t goes_on_from_ = 0;     // a checkpoint of that step; 0: there is none
  SaveRunner* runner_ = nullptr;  // else a thread of the supervisor
  Mutex mutex_;
  CondVar changed_;
  SavedSteps saved_ DTF_GUARDED_BY(mutex_);
  // The steps of evaluations, and of their checkpoints.
  std::vector<std::pair<uint64_t, uint64_t>> evaluated_ DTF_GUARDED_BY(mutex_);
  SavedSteps went_back_ DTF_GUARDED_BY(mutex_);
  std::string hopeless_ DTF_GUARDED_BY(mutex_);
  std::unique_ptr<Checkpointer> checkpointer_;
  std::optional<Supervisor> supervisor_;
};

}  // namespace dtf::train
