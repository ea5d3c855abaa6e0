// A job that is asked to stop while its chief is restarted.

#include <gtest/gtest.h>

#include <csignal>
#include <vector>

#include "launcher/task_monitor.h"

namespace dtf::launcher {

using std::chrono::seconds;

// A job whose tasks are restarted, all ready.
class RestartedChiefTest : public ::testing::Test {
 protected:
  RestartedChiefTest() {
    for (size_t task = 0; task < 3; ++task) {
      monitor_.onSpawned(task);
      monitor_.onReady(task);
    }
  }
  void chiefIsKilled() {
    monitor_.onExit(1, {0, SIGKILL});
    EXPECT_EQ(monitor_.state(1), TaskState::kWaiting);
  }
  void chiefStarts() {
    clock_.advance(seconds(1));
    EXPECT_EQ(monitor_.takeStarts(), std::vector<size_t>{1});
    monitor_.onSpawned(1);
  }
  void expectRequestWhenReady() {
    EXPECT_TRUE(monitor_.saving());
    EXPECT_TRUE(monitor_.takeOrders().empty()) << "SIGTERM would end it, unsaved";
    monitor_.onReady(1);
    EXPECT_EQ(monitor_.takeOrders(), (std::vector<SignalOrder>{{1, SIGTERM}}));
    for (size_t task = 0; task < 3; ++task) monitor_.onExit(task, {0, 0});
    EXPECT_EQ(monitor_.outcome(), Outcome::kStopped);
  }

  ManualClock clock_;
  TaskMonitor monitor_{{{JobKind::kPs, 0}, {JobKind::kWorker, 0}, {JobKind::kWorker, 1}},
                       clock_,
                       {.save = seconds(31), .restarts = {.max = 3}}};
};

TEST_F(RestartedChiefTest, IsAskedToSaveIfItsLastProcessDiedWithTheRequest) {
  monitor_.onStopRequest(SIGINT);
  EXPECT_EQ(monitor_.takeOrders(), (std::vector<SignalOrder>{{1, SIGTERM}}));
  chiefIsKilled();
  chiefStarts();
  expectRequestWhenReady();
}

TEST_F(RestartedChiefTest, IsAskedToSaveIfTheRequestCameWhileItWaited) {
  chiefIsKilled();
  monitor_.onStopRequest(SIGTERM);
  chiefStarts();
  expectRequestWhenReady();
}

TEST_F(RestartedChiefTest, IsAskedToSaveIfTheRequestCameWhileItStarted) {
  chiefIsKilled();
  chiefStarts();
  monitor_.onStopRequest(SIGINT);
  expectRequestWhenReady();
}

}  // namespace dtf::launcher
