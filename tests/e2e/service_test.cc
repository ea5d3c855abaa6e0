// psd and workerd under a service manager: their messages on NOTIFY_SOCKET, and when they send
// them.

#include <signal.h>

#include "tests/e2e/cluster_fixture.h"
#include "tests/support/notify_socket.h"

namespace dtf::testing {

using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

// Half of it is long beside a busy machine's delays.
constexpr auto kWatchdog = seconds(2);

// A task that believes systemd to have started it.
struct Unit {
  NotifySocket socket;
  std::unique_ptr<Process> process;
};

class ServiceTest : public ClusterTest {
 protected:
  Unit start(const std::string& file, const std::string& job, int index,
             std::map<std::string, std::string> environment = {}) {
    const std::string name =
        "@dtf-" + std::to_string(::getpid()) + "-" + job + std::to_string(index);
    Unit unit{NotifySocket(name), nullptr};
    environment["NOTIFY_SOCKET"] = name;
    environment.try_emplace(
        "WATCHDOG_USEC",
        std::to_string(std::chrono::duration_cast<std::chrono::microseconds>(kWatchdog).count()));
    unit.process = std::make_unique<Process>(startTask(file, job, index, {}, environment));
    return unit;
  }

  // One ps and one worker that train until they are ended.
  void startBoth(ClusterOptions options = {}) {
    options.ps = options.workers = 1;
    options.steps = kEndless;
    options.ports = freePorts(2);
    file_ = writeCluster(options);
    units_.push_back(start(file_, "ps", 0));
    units_.push_back(start(file_, "worker", 0));
  }

  std::string file_;
  std::vector<Unit> units_;
};

TEST_F(ServiceTest, AWorkerIsReadyOnlyOnceItHasItsPs) {
  file_ = writeCluster({.ps = 1, .workers = 1, .steps = kEndless, .ports = freePorts(2)});
  Unit worker = start(file_, "worker", 0);
  const auto waiting = worker.socket.await("STATUS=starting, waiting for ps/0", kPatience);
  ASSERT_TRUE(waiting) << worker.process->err();
  EXPECT_NE(waiting->find("EXTEND_TIMEOUT_USEC="), std::string::npos)
      << "its own deadline counts: " << *waiting;
  EXPECT_EQ(worker.socket.heard().find("READY=1"), std::string::npos) << worker.socket.heard();
  Unit ps = start(file_, "ps", 0);
  EXPECT_TRUE(ps.socket.await("READY=1", kPatience)) << ps.process->err();
  EXPECT_TRUE(worker.socket.await("READY=1", kPatience)) << worker.process->err();
  const auto step = worker.socket.await("STATUS=step ", kPatience);
  ASSERT_TRUE(step) << worker.socket.heard();
  EXPECT_NE(step->find(" of 100000000, loss "), std::string::npos) << *step;
  EXPECT_TRUE(ps.socket.await("STATUS=step ", kPatience)) << ps.socket.heard();
}

TEST_F(ServiceTest, TheWatchdogIsFedTwiceInItsPeriodAndNotByWhoStands) {
  startBoth();
  for (Unit& unit : units_)
    ASSERT_TRUE(unit.socket.await("READY=1", kPatience)) << unit.process->err();
  for (Unit& unit : units_) {
    while (unit.socket.next(milliseconds(0))) {  // messages from before
    }
    ASSERT_TRUE(unit.socket.await("WATCHDOG=1", kPatience)) << unit.process->err();
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < 2; ++i) {
      const auto fed = unit.socket.await("WATCHDOG=1", kWatchdog);
      EXPECT_TRUE(fed) << "not within a period\n" << unit.process->err();
    }
    EXPECT_GE(std::chrono::steady_clock::now() - begin, kWatchdog * 3 / 4);
  }
  Unit& ps = units_[0];
  ps.process->signal(SIGSTOP);
  while (ps.socket.next(milliseconds(300))) {
  }
  EXPECT_EQ(ps.socket.await("WATCHDOG=1", kWatchdog), std::nullopt);
  ps.process->signal(SIGCONT);
  EXPECT_TRUE(ps.socket.await("WATCHDOG=1", kPatience)) << ps.process->err();
}

TEST_F(ServiceTest, TheWatchdogOfAnotherProcessIsNotOurs) {
  file_ = writeCluster({.ps = 1, .workers = 1, .steps = kEndless, .ports = freePorts(2)});
  Unit ps = start(file_, "ps", 0, {{"WATCHDOG_PID", "1"}});
  const auto status = ps.socket.await("STATUS=", kPatience);
  ASSERT_TRUE(status) << ps.process->err();
  EXPECT_EQ(ps.socket.heard().find("WATCHDOG=1"), std::string::npos) << ps.socket.heard();
}

TEST_F(ServiceTest, ATaskThatIsToldToEndSaysSoAndSaves) {
  startBoth({.train_more = "  checkpoint: {every_seconds: 3600}\n"});
  for (Unit& unit : units_)
    ASSERT_TRUE(unit.socket.await("READY=1", kPatience)) << unit.process->err();
  ASSERT_TRUE(units_[1].socket.await("STATUS=step ", kPatience)) << units_[1].socket.heard();
  for (Unit& unit : units_) unit.process->signal(SIGTERM);
  for (Unit& unit : units_) {
    EXPECT_TRUE(unit.socket.await("STOPPING=1", kPatience)) << unit.process->err();
    EXPECT_EQ(unit.process->wait(kPatience).exit_code, 0) << unit.process->err();
    EXPECT_TRUE(unit.socket.await("STATUS=ended", seconds(1))) << unit.socket.heard();
  }
  EXPECT_EQ(summary()["outcome"], "stopped");
}

TEST_F(ServiceTest, WhatIsWrongIsTheStatus) {
  const std::string file = folder_.write("bad.yaml", "cluster: {ps: [localhost:1]}\nstepz: 3\n");
  Unit ps = start(file, "ps", 0);
  EXPECT_EQ(ps.process->wait(kPatience).exit_code, 78) << ps.process->err();
  const auto status = ps.socket.await("STATUS=failed: ", seconds(1));
  ASSERT_TRUE(status) << ps.socket.heard();
  EXPECT_NE(status->find("stepz"), std::string::npos) << *status;
  EXPECT_EQ(ps.socket.heard().find("READY=1"), std::string::npos);
}

// Under dtf-launch, which itself may be a service: the tasks are its own.
TEST_F(ServiceTest, TasksOfALauncherSayNothingToItsServiceManager) {
  NotifySocket socket("@dtf-" + std::to_string(::getpid()) + "-launcher");
  const ProcessResult result =
      runProcess(launchCommand(writeCluster({})), kPatience, {{"NOTIFY_SOCKET", socket.name()}});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(socket.next(milliseconds(0)), std::nullopt) << socket.heard();
}

}  // namespace

}  // namespace dtf::testing
