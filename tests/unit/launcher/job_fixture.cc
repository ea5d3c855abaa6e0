#include "tests/unit/launcher/job_fixture.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>
#include <thread>

#include "common/base/error.h"
#include "tests/support/process.h"

namespace dtf::launcher {

namespace fs = std::filesystem;

namespace {

template <class Condition>
bool within(double seconds, Condition condition) {
  const auto deadline = std::chrono::steady_clock::now() +
                        dtf::testing::Process::kSlowest * std::chrono::duration<double>(seconds);
  while (!condition()) {
    if (std::chrono::steady_clock::now() >= deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

[[noreturn]] void runLauncher(const cluster::JobSpec& job, const LaunchOptions& options,
                              const fs::path& folder) {
  const int flags = O_WRONLY | O_CREAT | O_TRUNC;
  ::setpgid(0, 0);
  ::signal(SIGPIPE, SIG_IGN);  // as in dtf-launch
  ::dup2(::open((folder / "out").c_str(), flags, 0600), STDOUT_FILENO);
  ::dup2(::open((folder / "err").c_str(), flags, 0600), STDERR_FILENO);
  int code = 0;
  try {
    code = launch(job, options);
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.message().c_str());
    code = exitCode(error.code());
  }
  std::fflush(nullptr);
  ::_exit(code);
}

}  // namespace

JobFixture::JobFixture() {
  std::string pattern = (fs::temp_directory_path() / "dtf-launch-XXXXXX").string();
  folder_ = ::mkdtemp(pattern.data());
  for (const char* name : {"psd", "workerd"}) fs::create_symlink(FAKE_TASK, folder_ / name);
  options_.plan.cluster_file = "cluster.yaml";
  options_.plan.binaries = {folder_ / "psd", folder_ / "workerd"};
  options_.plan.folder = folder_;
}

JobFixture::~JobFixture() {
  fs::remove_all(folder_);
}

cluster::JobSpec JobFixture::job(const std::vector<std::string>& ps,
                                 const std::vector<std::string>& workers) {
  cluster::JobSpec job;
  job.job = "test-job";
  job.run_dir = folder_ / "run";
  const auto add = [this](const std::vector<std::string>& scripts,
                          std::vector<cluster::TaskSpec>& tasks) {
    for (const std::string& script : scripts) {
      cluster::TaskSpec task;
      task.address = {"localhost", 0};
      task.env = {{"DTF_FAKE", script}, {"DTF_TEST_FOLDER", folder_.string()}};
      tasks.push_back(std::move(task));
    }
  };
  add(ps, job.cluster.ps);
  add(workers, job.cluster.worker);
  return job;
}

pid_t JobFixture::start(const cluster::JobSpec& job, bool json) {
  options_.json = json;
  std::fflush(nullptr);  // or the child writes this process's buffered output, too
  const pid_t pid = ::fork();
  if (pid == 0) runLauncher(job, options_, folder_);
  return pid;
}

ExitStatus JobFixture::await(pid_t launcher) {
  int status = 0;
  if (!within(20, [&] { return ::waitpid(launcher, &status, WNOHANG) == launcher; })) {
    ADD_FAILURE() << "the launcher has not ended in time; stderr:\n" << err();
    ::kill(launcher, SIGKILL);
    ::waitpid(launcher, &status, 0);
  }
  return ExitStatus::fromWait(status);
}

void JobFixture::awaitError(const std::string& text) {
  awaitText(folder_ / "err", text);
}

void JobFixture::awaitText(const fs::path& file, const std::string& wanted) {
  ASSERT_TRUE(within(20, [&] { return text(file).find(wanted) != std::string::npos; })) << err();
}

void JobFixture::awaitFile(const fs::path& file) {
  ASSERT_TRUE(within(20, [&] { return fs::exists(file); })) << file << "\nstderr:\n" << err();
}

void JobFixture::expectNoProcess(double seconds) {
  EXPECT_TRUE(within(seconds, [this] { return processes() == 0; }))
      << processes() << " processes are left after " << seconds << " s";
}

size_t JobFixture::processes() const {
  const std::string mark = "DTF_TEST_FOLDER=" + folder_.string();
  size_t count = 0;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const std::string environment = text(entry.path() / "environ");
    if (environment.find(mark + '\0') != std::string::npos) ++count;
  }
  return count;
}

std::string JobFixture::text(const fs::path& file) const {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

Json JobFixture::summary() const {
  return Json::parseOrNull(text(folder_ / "run" / "summary.json"));
}

}  // namespace dtf::launcher
