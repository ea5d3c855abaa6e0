#include "tests/support/process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <utility>

namespace dtf::testing {

namespace {

std::string readAll(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string temporaryFile() {
  std::string pattern = (std::filesystem::temp_directory_path() / "dtf-out-XXXXXX").string();
  const int fd = ::mkostemp(pattern.data(), O_CLOEXEC);
  if (fd < 0) throw std::runtime_error("mkstemp failed");
  ::close(fd);
  return pattern;
}

[[noreturn]] void runChild(const std::vector<std::string>& argv,
                           const std::map<std::string, std::string>& environment,
                           const std::string& working_folder, const std::string& out,
                           const std::string& err) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // a test that crashes leaves nothing behind
  const int null_fd = ::open("/dev/null", O_RDONLY);
  ::dup2(null_fd, 0);
  ::dup2(::open(out.c_str(), O_WRONLY | O_APPEND), 1);
  ::dup2(::open(err.c_str(), O_WRONLY | O_APPEND), 2);
  for (const auto& [name, value] : environment) ::setenv(name.c_str(), value.c_str(), 1);
  if (!working_folder.empty() && ::chdir(working_folder.c_str()) != 0) ::_exit(126);
  std::vector<char*> arguments;
  for (const std::string& argument : argv) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  ::execvp(arguments[0], arguments.data());
  ::_exit(127);
}

}  // namespace

Process::Process(std::vector<std::string> argv, std::map<std::string, std::string> environment,
                 std::string working_folder)
    : out_path_(temporaryFile()), err_path_(temporaryFile()) {
  pid_ = ::fork();
  if (pid_ < 0) throw std::runtime_error("fork failed");
  if (pid_ == 0) runChild(argv, environment, working_folder, out_path_, err_path_);
}

Process::Process(Process&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      reaped_(other.reaped_),
      status_(other.status_),
      out_path_(std::move(other.out_path_)),
      err_path_(std::move(other.err_path_)) {
  other.out_path_.clear();
}

Process::~Process() {
  if (pid_ < 0) return;
  ::kill(-pid_, SIGKILL);
  if (!reaped_) ::waitpid(pid_, &status_, 0);
  ::unlink(out_path_.c_str());
  ::unlink(err_path_.c_str());
}

void Process::signal(int number) const {
  ::kill(pid_, number);
}

bool Process::running() {
  if (!reaped_ && ::waitpid(pid_, &status_, WNOHANG) == pid_) reaped_ = true;
  return !reaped_;
}

ProcessResult Process::wait(std::chrono::seconds deadline) {
  if (!reaped_) {
    // A pidfd becomes readable when the process ends: a wait with a deadline and without polling.
    const int fd = static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0));
    pollfd waiting{fd, POLLIN, 0};
    const int ready = ::poll(
        &waiting, 1, static_cast<int>(std::chrono::milliseconds(kSlowest * deadline).count()));
    ::close(fd);
    if (ready <= 0) {
      ::kill(-pid_, SIGKILL);
      ::waitpid(pid_, &status_, 0);
      reaped_ = true;
      return {-1, out(), err() + "\n[test] still running at the deadline: killed\n"};
    }
    ::waitpid(pid_, &status_, 0);
    reaped_ = true;
  }
  const int code = WIFSIGNALED(status_) ? 128 + WTERMSIG(status_) : WEXITSTATUS(status_);
  return {code, out(), err()};
}

bool Process::waitForOutput(const std::string& text, std::chrono::seconds deadline) {
  const auto end = std::chrono::steady_clock::now() + kSlowest * deadline;
  while (std::chrono::steady_clock::now() < end) {
    if ((out() + err()).find(text) != std::string::npos) return true;
    if (!running()) return (out() + err()).find(text) != std::string::npos;
    ::poll(nullptr, 0, 10);
  }
  return false;
}

std::string Process::out() const {
  return readAll(out_path_);
}
std::string Process::err() const {
  return readAll(err_path_);
}

ProcessResult runProcess(std::vector<std::string> argv, std::chrono::seconds deadline,
                         std::map<std::string, std::string> environment,
                         std::string working_folder) {
  return Process(std::move(argv), std::move(environment), std::move(working_folder)).wait(deadline);
}

TemporaryFolder::TemporaryFolder() {
  path_ = (std::filesystem::temp_directory_path() / "dtf-test-XXXXXX").string();
  if (::mkdtemp(path_.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string TemporaryFolder::write(const std::string& name, const std::string& text) const {
  const std::string file = path_ + "/" + name;
  std::ofstream(file) << text;
  return file;
}

std::string TemporaryFolder::read(const std::string& name) const {
  return readAll(path_ + "/" + name);
}

}  // namespace dtf::testing
