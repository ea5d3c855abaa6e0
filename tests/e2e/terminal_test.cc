// A job's terminal, or the lack of it: a log without a reader, a suspended launcher.

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <regex>
#include <sstream>
#include <stdexcept>

#include "common/base/json.h"
#include "tests/e2e/cluster_fixture.h"

namespace dtf::testing {

namespace fs = std::filesystem;
using std::chrono::seconds;

class TerminalTest : public ClusterTest {
 protected:
  static int timesIn(const std::string& text, const std::string& what) {
    int times = 0;
    for (size_t at = text.find(what); at != text.npos; at = text.find(what, at + 1)) ++times;
    return times;
  }
  // The step of the newest checkpoint; 0: there is none.
  uint64_t savedStep() const {
    uint64_t newest = 0;
    std::error_code ignored;
    for (const auto& entry :
         fs::directory_iterator(folder_.path() + "/runs/job/checkpoints", ignored)) {
      const std::string name = entry.path().filename();
      if (name.starts_with("step-"))
        newest = std::max<uint64_t>(newest, std::stoull(name.substr(5)));
    }
    return newest;
  }
  bool savedBeyond(uint64_t step, seconds limit) const {
    const auto end = std::chrono::steady_clock::now() + limit;
    while (std::chrono::steady_clock::now() < end) {
      if (savedStep() > step) return true;
      ::poll(nullptr, 0, 20);
    }
    return false;
  }
};

// stdout and stderr are full, as behind an idle pager.
TEST_F(TerminalTest, ALauncherWhoseWordsNobodyReadsEnds) {
  const std::string fifo = folder_.path() + "/full";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  const int end = ::open(fifo.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC);
  const std::string block(4096, '.');
  while (::write(end, block.data(), block.size()) > 0) {
  }
  const auto launch = [&](const std::string& file, const std::string& redirection) {
    return runProcess(
        {"/bin/sh", "-c", "exec \"$0\" \"$1\" " + redirection, binary("dtf-launch"), file, fifo},
        seconds(60), {}, folder_.path());
  };
  EXPECT_EQ(launch(folder_.path() + "/none.yaml", "2> \"$2\"").exit_code, 78);
  const ProcessResult result = launch(writeCluster({.steps = 20}), "> \"$2\"");
  EXPECT_EQ(result.exit_code, 73) << result.err;
  EXPECT_NE(result.err.find("cannot write the result to stdout; it is in "), std::string::npos);
  EXPECT_EQ(summary()["outcome"], "done");
  ::close(end);
}

// A FIFO in the place of stderr, full from the start.
TEST_F(TerminalTest, TasksWhoseLogNobodyReadsTrainToTheEnd) {
  const std::string fifo = folder_.path() + "/full";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  const int end = ::open(fifo.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC);
  const std::string block(4096, '.');
  while (::write(end, block.data(), block.size()) > 0) {
  }
  const std::string file = writeCluster({.steps = 200, .ports = freePorts(4)});
  std::vector<Process> tasks;
  for (const char* task : {"psd 0", "psd 1", "workerd 0", "workerd 1"}) {
    const std::string name = std::string(task).substr(0, std::string(task).size() - 2);
    tasks.emplace_back(std::vector<std::string>{
        "/bin/sh", "-c", "exec \"$0\" --cluster \"$1\" --task \"$2\" 2> \"$3\"", binary(name), file,
        std::string(1, task[name.size() + 1]), fifo});
  }
  for (Process& task : tasks) EXPECT_EQ(task.wait(seconds(30)).exit_code, 0);
  ::close(end);
  EXPECT_EQ(summary()["global_step"], 200);
}

// Ctrl-Z on dtf-launch: the pipes of the tasks have no reader, but their logs and notices go on.
TEST_F(TerminalTest, ASuspendedLauncherHoldsUpNoTask) {
  ClusterOptions options;
  options.steps = 100'000'000;
  options.top_more = "timeouts: {finish_seconds: 5}\n";
  options.train_more = "  checkpoint: {every_steps: 1}\n";
  Process launcher(launchCommand(writeCluster(options), {"--log-level", "debug"}), {},
                   folder_.path());
  ASSERT_TRUE(savedBeyond(0, seconds(30))) << launcher.err();
  launcher.signal(SIGSTOP);
  // More checkpoints than either pipe holds lines of: 64 KiB of about 120 bytes.
  int saved = 0;
  for (uint64_t at = savedStep(); saved < 650 && savedBeyond(at, seconds(8)); ++saved)
    at = savedStep();
  EXPECT_EQ(saved, 650) << "no checkpoint for 8 s while the launcher was suspended";
  launcher.signal(SIGCONT);
  launcher.signal(SIGTERM);
  EXPECT_TRUE(launcher.wait(seconds(30)).exit_code != -1) << launcher.err();
  expectNothingLeft();
}

TEST_F(TerminalTest, ManyTasksGiveFewLines) {
  const std::string file = writeCluster({.ps = 2, .workers = 4, .steps = 50});
  const ProcessResult result =
      runProcess({binary("dtf-launch"), file}, seconds(60), {}, folder_.path());
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_LE(std::count(result.err.begin(), result.err.end(), '\n'), 9) << result.err;
  EXPECT_EQ(timesIn(result.err, "all 6 tasks are ready"), 1) << result.err;
  EXPECT_NE(result.err.find("evaluation at step 50: accuracy "), std::string::npos) << result.err;
  EXPECT_EQ(result.err.find("event=joined"), std::string::npos) << result.err;
}

// One `ready` event for each task, and one line for all.
TEST_F(TerminalTest, EachTaskOfManyIsReadyOnce) {
  const std::string file = writeCluster({.ps = 3, .workers = 5, .steps = 50});
  const ProcessResult result = launch(file, {"--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(timesIn(result.err, "all 8 tasks are ready"), 1) << result.err;
  std::map<std::string, int> ready;
  std::istringstream lines(result.out);
  for (std::string line; std::getline(lines, line);) {
    const Json event = Json::parse(line);
    if (event.stringOr("event", "") == "ready") ++ready[event.stringAt("task")];
  }
  EXPECT_EQ(ready, (std::map<std::string, int>{{"ps/0", 1},
                                               {"ps/1", 1},
                                               {"ps/2", 1},
                                               {"worker/0", 1},
                                               {"worker/1", 1},
                                               {"worker/2", 1},
                                               {"worker/3", 1},
                                               {"worker/4", 1}}));
}

// kill -STOP of worker/1 in sync mode: worker/0 waits, and no task counts it as lost.
TEST_F(TerminalTest, AFrozenWorkerIsNamedWhileTheJobWaitsAndAsTheCause) {
  ClusterOptions options;
  options.mode = "sync";
  options.steps = 100'000'000;
  options.top_more = "timeouts: {rejoin_seconds: 0}\nlaunch: {restarts: {max: 0}}\n";
  const std::string file = writeCluster(options);
  Process launcher({binary("dtf-launch"), file}, {}, folder_.path());
  ASSERT_TRUE(launcher.waitForOutput("step ", seconds(30))) << launcher.err();
  const std::string task = std::string("--task\0", 7) + '1';
  pid_t worker = 0;
  for (const std::string& process : leftovers())
    if (process.find("workerd") != std::string::npos && process.find(task) != std::string::npos)
      worker = std::stoi(process);
  ASSERT_GT(worker, 0);
  ::kill(worker, SIGSTOP);
  EXPECT_TRUE(launcher.waitForOutput("suspended: worker/1", seconds(30))) << launcher.err();
  const ProcessResult result = launcher.wait(seconds(60));
  EXPECT_NE(result.exit_code, 0);
  EXPECT_NE(result.err.find("job failed: worker/1 has not run for "), std::string::npos)
      << result.err;
}

// A terminal of 80 columns, as its reader sees it.
// Owns: both ends.
// Threads: one. Blocks: never.
class Terminal {
 public:
  Terminal() : fd_(::posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC)) {
    const winsize size{24, 80, 0, 0};
    if (::grantpt(fd_) != 0 || ::unlockpt(fd_) != 0 || ::ioctl(fd_, TIOCSWINSZ, &size) != 0)
      throw std::runtime_error("there is no pseudo-terminal");
    char name[64];
    if (::ptsname_r(fd_, name, sizeof name) != 0) throw std::runtime_error("ptsname_r");
    name_ = name;
    end_ = ::open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);  // this open end keeps its bytes
  }
  ~Terminal() {
    ::close(end_);
    ::close(fd_);
  }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;
  const std::string& name() const { return name_; }
  const std::string& read() {
    char buffer[4096];
    for (ssize_t n; (n = ::read(fd_, buffer, sizeof buffer)) > 0;)
      bytes_.append(buffer, static_cast<size_t>(n));
    return bytes_;
  }

 private:
  int fd_;
  int end_ = -1;
  std::string name_;
  std::string bytes_;
};

class OnATerminal : public TerminalTest {
 protected:
  // The terminal's output until the progress shows the time left and Ctrl-C ends the job.
  std::string seenWith(const std::string& term) {
    Terminal terminal;
    Process launcher = launchOn(
        terminal, writeCluster({.steps = 20'000'000, .train_more = "  eval: {every_steps: 500}\n"}),
        term);
    const auto end = std::chrono::steady_clock::now() + Process::kSlowest * seconds(60);
    while (terminal.read().find(" left") == std::string::npos && launcher.running() &&
           std::chrono::steady_clock::now() < end)
      ::poll(nullptr, 0, 20);
    launcher.signal(SIGINT);
    EXPECT_EQ(launcher.wait(seconds(30)).exit_code, 128 + SIGINT) << terminal.read();
    return terminal.read();
  }
  // The terminal's output for a whole job.
  std::string seenToTheEnd(const std::string& file) {
    Terminal terminal;
    Process launcher = launchOn(terminal, file, "xterm");
    const auto end = std::chrono::steady_clock::now() + Process::kSlowest * seconds(90);
    while (launcher.running() && std::chrono::steady_clock::now() < end) {
      terminal.read();  // a full terminal would block the launcher
      ::poll(nullptr, 0, 20);
    }
    EXPECT_EQ(launcher.wait(seconds(1)).exit_code, 0) << terminal.read();
    return terminal.read();
  }

  const std::string kErase = "\r\x1b[K";

 private:
  Process launchOn(const Terminal& terminal, const std::string& file, const std::string& term) {
    std::map<std::string, std::string> environment = unhurried();
    environment["TERM"] = term;
    return Process({"/bin/sh", "-c", "exec \"$0\" \"$1\" 2> \"$2\"", binary("dtf-launch"), file,
                    terminal.name()},
                   environment, folder_.path());
  }
};

TEST_F(OnATerminal, TheProgressFitsInto80ColumnsWithTheTimeLeft) {
  const std::string seen = seenWith("xterm");
  size_t drawn = 0;
  for (size_t at = seen.find(kErase); at != seen.npos; at = seen.find(kErase, at + 1)) {
    const size_t begin = at + kErase.size();
    const std::string line = seen.substr(begin, seen.find_first_of("\r\n", begin) - begin);
    if (line.find("| loss ") == line.npos) continue;  // the rate goes when the time left comes
    ++drawn;
    EXPECT_LT(line.size(), 80u) << "it would wrap\n" << line;
    EXPECT_EQ(line.find('\x1b'), line.npos) << line;
  }
  EXPECT_GT(drawn, 0u) << seen;
  EXPECT_NE(seen.find(" left"), seen.npos) << seen;
}

TEST_F(OnATerminal, EachEvaluationStaysAsALineAndTheLastAccuracyInTheProgress) {
  ClusterOptions options{.mode = "sync", .steps = 1200, .metrics = "[accuracy, top_5]"};
  options.train_more = "  eval: {every_steps: 200}\n  report: {every_steps: 10}\n";
  const std::string seen = seenToTheEnd(writeCluster(options));
  const std::regex evaluation(
      "^dtf-launch: evaluation at step ([0-9]+): accuracy ([0-9.]+), loss [0-9.e-]+, top_5 "
      "[0-9.]+\r$");
  std::vector<std::string> steps;
  std::string accuracy;  // of the last evaluation
  size_t drawn = 0;
  std::istringstream lines(seen);
  for (std::string line; std::getline(lines, line);) {
    // The progress lines that were drawn over before this one.
    const size_t last = line.rfind(kErase);
    for (size_t at = line.find(kErase); at != line.npos && !accuracy.empty();) {
      const size_t next = line.find(kErase, at + 1);
      const std::string progress = line.substr(at, next - at);
      at = next;
      if (progress.find("| loss ") == progress.npos) continue;
      ++drawn;
      EXPECT_NE(progress.find("| accuracy " + accuracy + " |"), progress.npos) << progress;
    }
    if (last != line.npos) line.erase(0, last + kErase.size());
    std::smatch found;
    if (!std::regex_match(line, found, evaluation)) continue;
    steps.push_back(found[1]);
    accuracy = found[2];
  }
  EXPECT_EQ(steps, (std::vector<std::string>{"200", "400", "600", "800", "1000", "1200"})) << seen;
  EXPECT_GT(drawn, 0u) << seen;
  EXPECT_EQ(accuracy, fmt::format("{:.4f}", summary()["eval"]["accuracy"].asDouble()));
}

TEST_F(OnATerminal, AnErrorIsRedUnlessNoColorIsWanted) {
  const std::string file = folder_.write("none.yaml", "cluster: {worker: [a:1]}\nwrokers: 2\n");
  const auto seen = [&](const std::string& variable, const std::string& option) {
    Terminal terminal;
    Process launcher({"/bin/sh", "-c", "exec \"$0\" \"$1\" $3 2> \"$2\"", binary("dtf-launch"),
                      file, terminal.name(), option},
                     {{"TERM", "xterm"}, {"NO_COLOR", variable}}, folder_.path());
    EXPECT_EQ(launcher.wait(seconds(30)).exit_code, 78);
    return terminal.read();
  };
  const std::string red = ": \x1b[1;31merror\x1b[0m: unknown key 'wrokers'";
  EXPECT_NE(seen("", "").find(red), std::string::npos) << seen("", "");
  for (const std::string& plain : {seen("1", ""), seen("", "--color=never")}) {
    EXPECT_EQ(plain.find('\x1b'), std::string::npos) << plain;
    EXPECT_NE(plain.find(": error: unknown key"), std::string::npos) << plain;
  }
}

TEST_F(OnATerminal, OneThatUnderstandsNothingGetsPlainLines) {
  const std::string seen = seenWith("dumb");
  EXPECT_EQ(seen.find('\x1b'), seen.npos) << seen;
  for (size_t at = seen.find('\r'); at != seen.npos; at = seen.find('\r', at + 1))
    ASSERT_EQ(seen[at + 1], '\n') << "nothing is drawn over\n" << seen;
  EXPECT_NE(seen.find("examples/s"), seen.npos) << seen;
}

}  // namespace dtf::testing
