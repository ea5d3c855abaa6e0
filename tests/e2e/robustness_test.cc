// A psd with bad peers: they speak another protocol, freeze, or die in the middle.

#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <sstream>
#include <stdexcept>

#include "tests/e2e/cluster_fixture.h"
#include "tests/e2e/cutting_proxy.h"
#include "tests/e2e/raw_connection.h"

namespace dtf::testing {

using std::chrono::seconds;

namespace {

size_t count(const std::string& text, const std::string& what) {
  size_t n = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++n;
  return n;
}

// The number behind `key=` in a log; -1: there is none.
long numberOf(const std::string& log, const std::string& key) {
  const size_t at = log.find(" " + key + "=");
  return at == std::string::npos ? -1 : std::stol(log.substr(at + key.size() + 2));
}

}  // namespace

// Descriptors that the process has open.
rlim_t descriptorsOf(pid_t pid) {
  const std::filesystem::directory_iterator all("/proc/" + std::to_string(pid) + "/fd");
  return static_cast<rlim_t>(std::distance(begin(all), end(all)));
}

// Allows the process `max` open descriptors; returns the limit before.
rlim_t setDescriptorsMax(pid_t pid, rlim_t max) {
  rlimit before{};
  if (::prlimit(pid, RLIMIT_NOFILE, nullptr, &before) != 0) throw std::runtime_error("prlimit");
  const rlimit wanted{max, before.rlim_max};
  if (::prlimit(pid, RLIMIT_NOFILE, &wanted, nullptr) != 0) throw std::runtime_error("prlimit");
  return before.rlim_cur;
}

// The processor time that it has used.
double cpuSecondsOf(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string stat;
  std::getline(file, stat);
  std::istringstream fields(stat.substr(stat.rfind(") ") + 2));
  std::string skipped;
  for (int i = 0; i < 11; ++i) fields >> skipped;
  double user = 0, system = 0;
  fields >> user >> system;
  return (user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

// A running job of one ps and two workers, started by hand so that each process can be looked at.
class RobustnessTest : public ClusterTest {
 protected:
  void startPs(ClusterOptions options) {
    options.ps = 1;
    options.train_more += "  report: {every_steps: 200}\n";  // so that the first one comes soon
    options.ports = freePorts(3);
    ports_ = options.ports;
    file_ = writeCluster(options);
    ps_ = std::make_unique<Process>(startTask(file_, "ps", 0));
  }
  void startWorkers() {
    for (int i = 0; i < 2; ++i) workers_.push_back(startTask(file_, "worker", i, {}, unhurried()));
  }
  // Returns once the ps has logged that it cannot accept connections.
  void startPsWithoutDescriptors(const ClusterOptions& options) {
    startPs(options);
    ASSERT_TRUE(ps_->waitForOutput("event=listening", seconds(20))) << ps_->err();
    descriptors_max_ = setDescriptorsMax(ps_->pid(), descriptorsOf(ps_->pid()));
    startWorkers();
    ASSERT_TRUE(ps_->waitForOutput("event=accept_failed", seconds(20))) << ps_->err();
    EXPECT_NE(ps_->err().find("reason=\"Too many open files\""), std::string::npos) << ps_->err();
  }
  void start(const ClusterOptions& options) {
    startPs(options);
    startWorkers();
    ASSERT_TRUE(workers_[0].waitForOutput("step=", seconds(20))) << workers_[0].err();
  }
  void TearDown() override {
    workers_.clear();
    ps_.reset();
    expectNothingLeft();
  }
  std::vector<int> ports_;
  std::string file_;
  rlim_t descriptors_max_ = 0;  // of the ps, before a test lowered it
  std::unique_ptr<Process> ps_;
  std::vector<Process> workers_;
};

TEST_F(RobustnessTest, JunkOnThePortCostsOneLogLineEachAndDisturbsNobody) {
  start({.steps = 4000});
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const long before = residentKb(ps_->pid());

  std::string noise(100000, '\0');
  for (char& byte : noise) byte = static_cast<char>(random());
  RawConnection http(ports_[0]), random_bytes(ports_[0]), segments(ports_[0]), huge(ports_[0]),
      after(ports_[0]);
  http.send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
  random_bytes.send(noise);
  segments.send(preamble() + std::string("\xff\xff\xff\xff\xff\xff\xff\xff", 8));
  // One segment of 2^32-1 words: 32 GiB.
  huge.send(preamble() + std::string("\0\0\0\0\xff\xff\xff\xff", 8));
  after.send(preamble() + noise);
  EXPECT_TRUE(http.closedWithin(seconds(8)));
  EXPECT_TRUE(random_bytes.closedWithin(seconds(8)));
  EXPECT_TRUE(segments.closedWithin(seconds(8)));
  EXPECT_TRUE(huge.closedWithin(seconds(8)));
  EXPECT_TRUE(after.closedWithin(seconds(8)));

  EXPECT_LT(residentKb(ps_->pid()) - before, 20000) << "memory stays bounded";
  for (Process& worker : workers_) {
    const ProcessResult result = worker.wait(seconds(120));
    EXPECT_EQ(result.exit_code, 0) << result.err;
  }
  const ProcessResult ps = ps_->wait(seconds(10));
  EXPECT_EQ(ps.exit_code, 0) << ps.err;
  EXPECT_NE(ps.err.find("HTTP"), std::string::npos) << ps.err;
  EXPECT_EQ(count(ps.err, "event=connection_refused"), 5u) << ps.err;
  EXPECT_EQ(summary()["global_step"], 4000);
}

// A ps that starts, and then cannot accept connections.
TEST_F(RobustnessTest, APsThatRunsOutOfDescriptorsSaysSoWithoutSpinningAndGoesOnWhenItHasSome) {
  startPsWithoutDescriptors({.steps = 200});
  const double before = cpuSecondsOf(ps_->pid());
  const auto since = std::chrono::steady_clock::now();
  // The worker logs several times, seconds apart, that it waits for the ps.
  ASSERT_TRUE(workers_[0].waitForOutput("event=waiting for=\"ps/0", seconds(20)))
      << workers_[0].err();
  ASSERT_TRUE(workers_[1].waitForOutput("event=waiting for=\"ps/0", seconds(20)))
      << workers_[1].err();
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - since;
  EXPECT_LT(cpuSecondsOf(ps_->pid()) - before, 0.1 + 0.1 * time.count()) << "it spins";
  EXPECT_LE(count(ps_->err(), "event=accept_failed"), 5 + static_cast<size_t>(5 * time.count()))
      << "five a second at most\n"
      << ps_->err();
  setDescriptorsMax(ps_->pid(), descriptors_max_);
  for (Process& worker : workers_) {
    const ProcessResult result = worker.wait(seconds(30));
    EXPECT_EQ(result.exit_code, 0) << result.err;
  }
  EXPECT_EQ(ps_->wait(seconds(10)).exit_code, 0) << ps_->err();
  EXPECT_EQ(summary()["global_step"], 200);
}

TEST_F(RobustnessTest, APsThatNeverHasDescriptorsAgainIsNamedWhenTheStartTakesTooLong) {
  startPsWithoutDescriptors({.steps = 200, .top_more = "timeouts: {start_seconds: 3}\n"});
  for (Process& worker : workers_) {
    const ProcessResult result = worker.wait(seconds(20));
    EXPECT_EQ(result.exit_code, 69) << result.err;
    EXPECT_NE(result.err.find("ps/0"), std::string::npos) << result.err;
  }
  EXPECT_EQ(ps_->wait(seconds(20)).exit_code, 69) << ps_->err();
}

TEST_F(RobustnessTest, AConnectionThatSaysNothingIsClosed) {
  start({.steps = 100000000});
  RawConnection silent(ports_[0]), no_hello(ports_[0]);
  no_hello.send(preamble());
  EXPECT_TRUE(silent.closedWithin(seconds(10)));
  EXPECT_TRUE(no_hello.closedWithin(seconds(10))) << "a preamble alone does not hold a connection";
}

TEST_F(RobustnessTest, AsyncGoesOnWhenAWorkerIsKilled) {
  start({.steps = 1500});
  workers_[1].signal(SIGKILL);
  const ProcessResult chief = workers_[0].wait(seconds(120));
  EXPECT_EQ(chief.exit_code, 0) << chief.err;
  EXPECT_EQ(summary()["global_step"], 1500) << "the lost worker's step went to the other";
  const ProcessResult ps = ps_->wait(seconds(10));
  EXPECT_EQ(ps.exit_code, 0) << ps.err;
  EXPECT_NE(ps.err.find("event=worker_lost worker=worker/1"), std::string::npos) << ps.err;
}

// The ps gets the whole head of a push and half of its gradient, and nothing more, ever.
TEST_F(RobustnessTest, HalfAPushOfAKilledWorkerIsNotAppliedAndTheOthersGoOn) {
  constexpr size_t kWhole = 5;
  ClusterOptions options{.ps = 1, .steps = 3000, .top_more = "shared_memory: false\n"};
  options.ports = freePorts(3);
  const std::string file = writeCluster(options);
  Process ps = startTask(file, "ps", 0);
  ASSERT_TRUE(ps.waitForOutput("event=listening", seconds(20))) << ps.err();
  std::atomic<pid_t> victim{0};
  CuttingProxy proxy(options.ports[0], kWhole, 16384, [&] { ::kill(victim, SIGKILL); });
  Process cut = startTask(file, "worker", 1,
                          {"--set", "cluster.ps=[localhost:" + std::to_string(proxy.port()) + "]"});
  victim = cut.pid();
  ASSERT_TRUE(ps.waitForOutput("event=joined worker=worker/1", seconds(20))) << cut.err();
  const long before = residentKb(ps.pid());
  Process chief = startTask(file, "worker", 0);  // nobody trains before both are there
  EXPECT_EQ(cut.wait(seconds(30)).exit_code, 128 + SIGKILL) << cut.err();
  EXPECT_TRUE(proxy.cut());
  ASSERT_TRUE(ps.waitForOutput("event=worker_lost worker=worker/1", seconds(10))) << ps.err();
  EXPECT_LT(residentKb(ps.pid()) - before, 20000) << "memory stays bounded";

  const ProcessResult result = chief.wait(seconds(60));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const ProcessResult ended = ps.wait(seconds(10));
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_EQ(count(ended.err, "event=worker_lost"), 1u) << ended.err;
  EXPECT_EQ(numberOf(ended.err, "workers_lost"), 1) << ended.err;
  EXPECT_EQ(numberOf(ended.err, "gradients_applied"), 3000) << ended.err;
  EXPECT_EQ(numberOf(result.err, "batches"), 3000 - static_cast<long>(kWhole))
      << "only the whole ones count; the chief made all the others\n"
      << result.err;
  EXPECT_EQ(summary()["global_step"], 3000);
}

TEST_F(RobustnessTest, AsyncGoesOnWhenAWorkerFreezesAndTheFrozenOneIsFenced) {
  start({.steps = 3000000, .top_more = "timeouts: {lease_seconds: 2, heartbeat_seconds: 0.5}\n"});
  workers_[1].signal(SIGSTOP);
  ASSERT_TRUE(ps_->waitForOutput("worker/1", seconds(10)));
  ASSERT_TRUE(ps_->waitForOutput("no heartbeat", seconds(10))) << ps_->err();
  const size_t reports = count(workers_[0].err(), "event=progress");
  const auto end = std::chrono::steady_clock::now() + Process::kSlowest * seconds(20);
  while (count(workers_[0].err(), "event=progress") < reports + 2) {
    ASSERT_LT(std::chrono::steady_clock::now(), end) << "no step without the frozen worker";
    ASSERT_TRUE(workers_[0].running()) << workers_[0].err();
    ::usleep(5'000);
  }
  workers_[1].signal(SIGCONT);
  const ProcessResult frozen = workers_[1].wait(seconds(20));
  EXPECT_EQ(frozen.exit_code, 69) << "unavailable: permission has nothing to do with it";
  EXPECT_NE(frozen.err.find("fenced"), std::string::npos) << frozen.err;
  EXPECT_TRUE(workers_[0].running()) << workers_[0].err();
}

TEST_F(RobustnessTest, SyncNamesTheWorkerThatWasLost) {
  start({.mode = "sync", .steps = 100000000, .top_more = "timeouts: {rejoin_seconds: 0}\n"});
  workers_[1].signal(SIGKILL);
  const ProcessResult chief = workers_[0].wait(seconds(15));
  EXPECT_EQ(chief.exit_code, 69) << chief.err;
  EXPECT_NE(chief.err.find("worker/1 was lost"), std::string::npos) << chief.err;
}

TEST_F(RobustnessTest, SyncSaysByNameWhomItWaitsForBeforeTheLeaseRunsOut) {
  start({.mode = "sync",
         .steps = 100000000,
         .top_more = "timeouts: {lease_seconds: 6, heartbeat_seconds: 0.5, rejoin_seconds: 0}\n"});
  workers_[1].signal(SIGSTOP);
  ASSERT_TRUE(workers_[0].waitForOutput("event=waiting for=\"worker/1 in step", seconds(10)))
      << workers_[0].err();
  EXPECT_TRUE(workers_[0].running()) << "it only waits, yet";
  const ProcessResult chief = workers_[0].wait(seconds(20));
  EXPECT_EQ(chief.exit_code, 69) << chief.err;
  EXPECT_NE(chief.err.find("worker/1 was lost (no heartbeat for 6 s)"), std::string::npos)
      << chief.err;
}

// SIGSTOP to all tasks acts like a suspended machine.
TEST_F(RobustnessTest, APauseOfTheWholeJobBeyondTheLeaseEndsNothing) {
  start({.mode = "sync",
         .steps = 100000000,
         .top_more = "timeouts: {lease_seconds: 2, heartbeat_seconds: 0.5}\n"});
  for (int round = 0; round < 3; ++round) {
    std::vector<Process*> all{ps_.get(), &workers_[0], &workers_[1]};
    for (Process* process : all) process->signal(SIGSTOP);
    ::sleep(4);  // the pause: twice the lease
    std::rotate(all.begin(), all.begin() + round, all.end());
    for (Process* process : all) process->signal(SIGCONT);
    const size_t said = workers_[0].err().size();
    const auto end = std::chrono::steady_clock::now() + Process::kSlowest * seconds(20);
    while (workers_[0].running() && workers_[0].err().size() < said + 1000 &&
           std::chrono::steady_clock::now() < end)
      ::usleep(10'000);
    EXPECT_GE(workers_[0].err().size(), said + 1000) << "the job goes on\n" << workers_[0].err();
    for (Process* process : all) ASSERT_TRUE(process->running()) << process->err();
  }
}

TEST_F(RobustnessTest, AFrozenPsIsNamed) {
  start({.steps = 100000000,
         .top_more = "timeouts: {lease_seconds: 2, heartbeat_seconds: 0.5, rejoin_seconds: 0}\n"});
  ps_->signal(SIGSTOP);
  const ProcessResult chief = workers_[0].wait(seconds(15));
  EXPECT_EQ(chief.exit_code, 69) << chief.err;
  EXPECT_NE(chief.err.find("ps/0"), std::string::npos) << chief.err;
  EXPECT_NE(chief.err.find("heartbeat"), std::string::npos) << chief.err;
}

TEST_F(RobustnessTest, AKilledPsThatIsNotWaitedForIsNamedAtOnce) {
  start({.steps = 100000000, .top_more = "timeouts: {rejoin_seconds: 0}\n"});
  ps_->signal(SIGKILL);
  const ProcessResult chief = workers_[0].wait(seconds(5));
  EXPECT_EQ(chief.exit_code, 69) << chief.err;
  EXPECT_NE(chief.err.find("lost ps/0"), std::string::npos) << chief.err;
}

}  // namespace dtf::testing
