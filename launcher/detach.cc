#include "launcher/detach.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/base/file.h"
#include "common/base/print.h"
#include "launcher/exit_status.h"
#include "launcher/launch_plan.h"
#include "launcher/log_fanin.h"
#include "launcher/output.h"

namespace dtf::launcher {

namespace fs = std::filesystem;

namespace {

constexpr uint64_t kSaidBytesMax = uint64_t{1} << 20;

Fd openLog(const fs::path& file) {
  Fd log(::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0644));
  if (!log.valid())
    throw Error(ErrorCode::kCannotWrite, "cannot write " + file.string() + ": " + errnoText(errno));
  return log;
}

[[noreturn]] void runChild(const cluster::JobSpec& job, LaunchOptions& options, const Fd& log,
                           Fd ready) {
  ::setsid();
  std::signal(SIGHUP, SIG_IGN);  // as nohup: the job outlives the terminal
  ::dup2(::open("/dev/null", O_RDONLY | O_CLOEXEC), STDIN_FILENO);
  ::dup2(log.get(), STDOUT_FILENO);
  ::dup2(log.get(), STDERR_FILENO);
  options.on_ready = [&ready] {
    [[maybe_unused]] const ssize_t written = ::write(ready.get(), "r", 1);
    ready.reset();
  };
  int code = exitCode(ErrorCode::kInternal);
  try {
    code = launch(job, options);
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    code = exitCode(error.code());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "dtf-launch: internal error: %s\n", error.what());
  }
  std::fflush(nullptr);
  ::_exit(code);
}

bool awaitReady(const Fd& pipe) {
  char byte = 0;
  ssize_t n = 0;
  do {
    n = ::read(pipe.get(), &byte, 1);
  } while (n < 0 && errno == EINTR);
  return n == 1;
}

}  // namespace

fs::path launcherLog(const fs::path& logs, int attempt) {
  return logs / fmt::format("dtf-launch.{}.log", attempt);
}

int launchDetached(const cluster::JobSpec& job, LaunchOptions options,
                   const fs::path& cluster_file) {
  DTF_CHECK(!options.on_ready);
  const fs::path logs = job.run_dir / "logs";
  makeWritableFolder(logs);
  options.attempt = nextAttempt(logs);
  const fs::path file = launcherLog(logs, *options.attempt);
  const Fd log = openLog(file);
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0)
    throw Error(ErrorCode::kUnavailable, "cannot make a pipe: " + errnoText(errno));
  const Fd ready(ends[0]);
  Fd tell(ends[1]);
  const pid_t pid = ::fork();
  if (pid < 0) throw Error(ErrorCode::kUnavailable, "cannot start a process: " + errnoText(errno));
  if (pid == 0) runChild(job, options, log, std::move(tell));
  tell.reset();
  if (awaitReady(ready)) {
    const std::string name = shellQuote(cluster_file.string());
    print(
        fmt::format("{}: runs, dtf-launch has pid {}\n"
                    "  dtf-launch status {}\n  dtf-launch attach {}\n  dtf-launch stop {}\n",
                    job.job, pid, name, name, name));
    return 0;
  }
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  printBounded(STDERR_FILENO, readFile(file, kSaidBytesMax));
  // Without a task it is no attempt, and all that it says has just been shown.
  if (newestAttempt(logs) < *options.attempt) ::unlink(file.c_str());
  return ExitStatus::fromWait(status).shellCode();
}

}  // namespace dtf::launcher
