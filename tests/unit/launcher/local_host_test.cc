#include "launcher/local_host.h"

#include <poll.h>

#include <chrono>
#include <csignal>
#include <optional>

#include "common/base/clock.h"
#include "common/base/error.h"
#include "tests/unit/launcher/loop_fixture.h"

namespace dtf::launcher {
namespace {

// Records one line for each event but output, which it collects.
class Recorder final : public TaskEvents {
 public:
  void onStarted(size_t task, pid_t pid) override {
    EXPECT_GT(pid, 0);
    last_pid = pid;
    lines.push_back("started " + std::to_string(task));
  }
  void onStartFailed(size_t task, const Error& error) override {
    lines.push_back("failed " + std::to_string(task));
    failure = error.code();
  }
  void onOutput(size_t, std::string_view bytes) override { output += bytes; }
  void onNotices(size_t, std::string_view bytes) override { notices += bytes; }
  void onExited(size_t task, ExitStatus status) override {
    lines.push_back("exited " + std::to_string(task) + ": " + status.text());
    ended = true;
  }
  void onHostTold(const std::string& text) override { lines.push_back(text); }
  void onHostNews(const std::string& text) override { lines.push_back(text); }

  std::vector<std::string> lines;
  std::string output, notices;
  std::optional<ErrorCode> failure;
  pid_t last_pid = 0;
  bool ended = false;
};

class LocalHostTest : public ::testing::Test {
 protected:
  TaskSpecs tasks() const {
    cluster::TaskSpec task;
    task.address = {"127.0.0.1", 0};
    return {{kWorker, task}};
  }
  static TaskCommand shell(const std::string& script) {
    TaskCommand command;
    command.id = kWorker;
    command.argv = {"/bin/sh", "-c", script};
    command.folder = "/";
    return command;
  }
  static constexpr TaskId kWorker{JobKind::kWorker, 0};
  boost::asio::io_context io_;
  SystemClock clock_;
  Recorder events_;
  LocalHost host_{io_, clock_, events_};
};

TEST_F(LocalHostTest, ATaskStartsSpeaksAndEndsInThisOrder) {
  const ChosenAddresses addresses = host_.listen(tasks(), false, [] { return false; });
  EXPECT_TRUE(addresses.at(kWorker).starts_with("127.0.0.1:"));
  host_.start(0, shell("echo hello; echo ready >&$DTF_NOTIFY_FD; exit 65"));
  runUntil(io_, [this] { return events_.ended; });
  const std::string ended = "exited 0: " + ExitStatus{65, 0}.text();
  EXPECT_EQ(events_.lines, (std::vector<std::string>{"started 0", ended}));
  EXPECT_EQ(events_.output, "hello\n") << "all of it, before the end";
  EXPECT_EQ(events_.notices, "ready\n");
}

TEST_F(LocalHostTest, ASuspendedTaskIsSeenAndMayGoOn) {
  host_.listen(tasks(), false, [] { return false; });
  // `exec`, because a shell may be stopped while it waits for its program to start.
  host_.start(0, shell("echo up; exec sleep 1000"));
  runUntil(io_, [this] { return events_.output == "up\n"; });
  EXPECT_FALSE(host_.suspended(0));
  host_.signal(0, SIGSTOP);
  const SystemClock clock;
  const TimePoint deadline = clock.now() + std::chrono::minutes(1);
  while (!host_.suspended(0)) {
    ASSERT_LT(clock.now(), deadline) << "it was never stopped";
    host_.look();
  }
  host_.signal(0, SIGCONT);
  host_.signal(0, SIGTERM);
  runUntil(io_, [this] { return events_.ended; });
  EXPECT_EQ(events_.lines.back(), ("exited 0: " + ExitStatus{0, SIGTERM}.text()));
  EXPECT_FALSE(host_.suspended(0)) << "it has no process";
  host_.signal(0, SIGTERM);
}

TEST_F(LocalHostTest, AMissingProgramIsAnEventNotAnError) {
  host_.listen(tasks(), false, [] { return false; });
  TaskCommand command = shell("");
  command.argv = {"/no/such/workerd"};
  host_.start(0, command);
  runUntil(io_, [this] { return !events_.lines.empty(); });
  EXPECT_EQ(events_.lines, std::vector<std::string>{"failed 0"});
  EXPECT_EQ(events_.failure, ErrorCode::kBadConfig);
}

TEST_F(LocalHostTest, ClosingEndsWhatIsLeft) {
  host_.listen(tasks(), false, [] { return false; });
  host_.start(0, shell("trap '' TERM; echo up; while :; do sleep 1000; done"));
  runUntil(io_, [this] { return events_.output == "up\n"; });
  const Fd exited = openPidfd(events_.last_pid);
  host_.close();
  pollfd state{exited.get(), POLLIN, 0};
  EXPECT_EQ(::poll(&state, 1, 0), 1) << "its process has ended";
  EXPECT_EQ(events_.lines, std::vector<std::string>{"started 0"}) << "nobody listens any more";
}

TEST_F(LocalHostTest, NothingIsFetchedFromItself) {
  EXPECT_FALSE(host_.fetchModel(5, [] { return false; }));
}

}  // namespace
}  // namespace dtf::launcher
