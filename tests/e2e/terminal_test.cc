// What a person sees of a job, or doesn't: a log that nobody reads, a launcher that is suspended.

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "tests/e2e/cluster_fixture.h"

namespace dtf::testing {

namespace fs = std::filesystem;
using std::chrono::seconds;

class TerminalTest : public ClusterTest {
 protected:
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

// stdout and stderr full, as a pager leaves them that nobody looks at.
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
  EXPECT_NE(result.err.find("stdout did not take the result; it is in "), std::string::npos);
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

// Ctrl-Z on dtf-launch: nobody reads the pipes of the tasks, whose log and notices go on.
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
  EXPECT_NE(result.err.find("all 6 tasks are ready"), std::string::npos) << result.err;
  EXPECT_NE(result.err.find("evaluation at step 50: accuracy "), std::string::npos) << result.err;
  EXPECT_EQ(result.err.find("event=joined"), std::string::npos) << result.err;
}

// kill -STOP of worker/1 in sync mode: worker/0 waits, and is lost to nobody.
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

}  // namespace dtf::testing
