// Processes that sleep past their lease, and wake to a job that has gone on without them. Real
// SIGSTOP.

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include "tests/e2e/recovery_fixture.h"

namespace dtf::testing {

using std::chrono::seconds;

namespace {

class SleepersTest : public RecoveryTest {
 protected:
  // An async job with short leases.
  static ClusterOptions asyncJob() {
    ClusterOptions options = syncJob();
    options.mode = "async";
    options.steps = 100'000'000;
    options.train_more += "  checkpoint: {every_steps: 2000}\n";
    options.top_more = "timeouts: {lease_seconds: 2, heartbeat_seconds: 0.5}\n";
    return options;
  }

  // Owns: a descriptor.
  struct Socket {
    explicit Socket(int number) : fd(number) {}
    ~Socket() { ::close(fd); }
    Socket(const Socket&) = delete;
    Socket& operator=(const Socket&) = delete;
    const int fd;
  };

  // A socket that any number of processes of one task can answer at, as two hosts behind one name
  // do.
  static std::unique_ptr<Socket> sharedSocket(int port) {
    auto socket = std::make_unique<Socket>(::socket(AF_INET, SOCK_STREAM, 0));  // inherited
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<uint16_t>(port));
    if (::bind(socket->fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
        ::listen(socket->fd, 16) != 0)
      throw std::runtime_error("a port of this process's is in use");
    return socket;
  }

  std::unique_ptr<Process> workerAt(const Socket& socket, int index) {
    return std::make_unique<Process>(
        startTask(file_, "worker", index, {}, {{"DTF_LISTEN_FD", std::to_string(socket.fd)}}));
  }

  // Sleeps until both ps have given it up.
  void putToSleep(Process& process, const std::string& lost) {
    process.signal(SIGSTOP);
    for (auto& ps : ps_) EXPECT_TRUE(ps->waitForOutput(lost, seconds(20))) << ps->err();
  }
};

// Without a launcher nobody counts the starts of a task, and a new ps has never met the sleeper:
// the time of day orders the two processes.
TEST_F(SleepersTest, AWorkerThatWakesNeverTakesThePlaceOfItsSuccessor) {
  ClusterOptions options = asyncJob();
  options.top_more += "durability: replica\n";
  options.ports = freePorts(options.ps + options.workers);
  file_ = writeCluster(options, "job");
  const std::unique_ptr<Socket> socket = sharedSocket(options.ports[3]);
  const auto worker = [&] { return workerAt(*socket, 1); };
  for (const int index : {0, 1}) ps_.push_back(task("ps", index));
  workers_.push_back(task("worker", 0));
  workers_.push_back(worker());
  awaitStep(400);
  putToSleep(*workers_[1], "event=worker_lost worker=worker/1");
  const std::unique_ptr<Process> successor = worker();
  ASSERT_TRUE(successor->waitForOutput("event=joined ps=2", kEnd)) << successor->err();
  loseAndStartAgain({1}, lastStep() + 400);
  ASSERT_TRUE(workers_[0]->waitForOutput("ps/1 takes its values from replicas", kEnd));
  ASSERT_TRUE(ps_[1]->waitForOutput("event=joined worker=worker/1", kEnd)) << ps_[1]->err();
  workers_[1]->signal(SIGCONT);
  const ProcessResult sleeper = workers_[1]->wait(seconds(20));
  EXPECT_EQ(sleeper.exit_code, 69) << sleeper.err;
  EXPECT_NE(sleeper.err.find("fenced: worker/1 was"), std::string::npos) << sleeper.err;
  awaitStep(lastStep() + 1000);
  EXPECT_TRUE(successor->running()) << successor->err();
}

// The sleeper holds the run directory, so no other process can be the chief on its disk.
TEST_F(SleepersTest, AChiefThatWakesIsFencedAndItsSuccessorInitialisesNothing) {
  ClusterOptions options = asyncJob();
  options.ports = freePorts(options.ps + options.workers);
  file_ = writeCluster(options, "job");
  const std::unique_ptr<Socket> socket = sharedSocket(options.ports[2]);
  for (const int index : {0, 1}) ps_.push_back(task("ps", index));
  workers_.push_back(workerAt(*socket, 0));
  workers_.push_back(task("worker", 1));
  awaitStep(3000);
  putToSleep(*workers_[0], "event=worker_lost worker=worker/0");
  const ProcessResult second = workerAt(*socket, 0)->wait(seconds(20));
  EXPECT_EQ(second.exit_code, 69) << second.err;
  const std::string holder = "is in use by workerd, pid " + std::to_string(workers_[0]->pid());
  EXPECT_NE(second.err.find(holder), std::string::npos) << second.err;
  workers_[0]->signal(SIGCONT);
  const ProcessResult sleeper = workers_[0]->wait(seconds(20));
  EXPECT_EQ(sleeper.exit_code, 69) << sleeper.err;
  EXPECT_NE(sleeper.err.find("fenced: worker/0 was declared lost"), std::string::npos)
      << sleeper.err;
  const int slept_at = lastStep();
  workers_[0] = workerAt(*socket, 0);
  awaitStep(slept_at + 4000);
  EXPECT_NE(workers_[0]->err().find("event=continued"), std::string::npos) << workers_[0]->err();
  EXPECT_TRUE(workers_[0]->waitForOutput("event=checkpoint", kEnd)) << workers_[0]->err();
  for (auto& ps : ps_) EXPECT_TRUE(ps->running()) << ps->err();
}

// Meanwhile the other worker trains on unsaved: for a lease and the start of a process, not to the
// end.
TEST_F(SleepersTest, AChiefThatSleepsUnderDtfLaunchIsReplacedAndCheckpointsGoOn) {
  ClusterOptions options = asyncJob();
  Process launcher(launchCommand(writeCluster(options)), {}, folder_.path());
  ASSERT_TRUE(launcher.waitForOutput("tasks are ready", kEnd)) << launcher.err();
  ASSERT_GT(signalWorker(leftovers(), 0, SIGSTOP), 0);
  ASSERT_TRUE(launcher.waitForOutput("worker/0 is back", kEnd)) << launcher.err();
  // The second chief saves a checkpoint in the middle, and one at the end.
  const auto saved = [this] {
    return folder_.read("runs/job/logs/worker-0.2.log").find("event=checkpoint step=") !=
           std::string::npos;
  };
  const auto end = std::chrono::steady_clock::now() + Process::kSlowest * kEnd;
  while (!saved() && launcher.running() && std::chrono::steady_clock::now() < end)
    ::poll(nullptr, 0, 20);
  EXPECT_TRUE(saved()) << launcher.err();
  launcher.signal(SIGTERM);
  const ProcessResult result = launcher.wait(kEnd);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(summary()["outcome"], "stopped");
  EXPECT_EQ(summary()["checkpoint"]["last_step"], summary()["global_step"]);
  EXPECT_EQ(summary()["tasks"][2]["restarts"], 1);
  expectNothingLeft();
}

}  // namespace

}  // namespace dtf::testing
