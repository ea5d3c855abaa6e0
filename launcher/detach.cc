#include "launcher/detach.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <utility>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/base/file.h"
#include "common/base/host_limits.h"
#include "common/base/json.h"
#include "common/base/print.h"
#include "common/base/run_lock.h"
#include "launcher/announce.h"
#include "launcher/exit_status.h"
#include "launcher/json_fields.h"
#include "launcher/launch_plan.h"
#include "launcher/live_status.h"
#include "launcher/log_fanin.h"
#include "launcher/output.h"
#include "launcher/spawner.h"

namespace dtf::launcher {

namespace fs = std::filesystem;

namespace {

constexpr uint64_t kDetachedSaysMax = uint64_t{1} << 20;

Fd openLog(const fs::path& file) {
  Fd log(::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0644));
  if (!log.valid()) failWrite(file, errno);
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
    printBounded(STDERR_FILENO, std::string(error.what()) + "\n");
    code = exitCode(error.code());
  } catch (const std::exception& error) {
    printBounded(STDERR_FILENO, std::string("dtf-launch: internal error: ") + error.what() + "\n");
  }
  std::fflush(nullptr);
  ::_exit(code);
}

// While it lives, signals that end a process are kept for this one to pass on: they are not for the
// launcher alone, which has a session of its own and doesn't see the terminal's Ctrl-C.
// Owns: the process's signal mask, and the descriptor that reads signals.
class HeldSignals {
 public:
  HeldSignals() {
    sigset_t held;
    ::sigemptyset(&held);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) ::sigaddset(&held, signal);
    DTF_CHECK(::sigprocmask(SIG_BLOCK, &held, &before_) == 0);
    fd_ = Fd(::signalfd(-1, &held, SFD_CLOEXEC));
  }
  HeldSignals(const HeldSignals&) = delete;
  ~HeldSignals() { release(); }
  void release() { ::sigprocmask(SIG_SETMASK, &before_, nullptr); }
  int fd() const { return fd_.get(); }
  int take() const {
    signalfd_siginfo info{};
    const ssize_t n = ::read(fd_.get(), &info, sizeof info);
    return n == sizeof info ? static_cast<int>(info.ssi_signo) : 0;
  }

 private:
  sigset_t before_{};
  Fd fd_;
};

// True: every task is ready. False: the launcher has ended, or is about to: a signal that comes
// before the tasks are ready stops the job, as it would without --detach.
bool awaitReady(const Fd& ready, const HeldSignals& signals, const Fd& exited, pid_t launcher) {
  bool stopping = false;
  for (;;) {
    pollfd events[] = {
        {signals.fd(), POLLIN, 0}, {exited.get(), POLLIN, 0}, {ready.get(), POLLIN, 0}};
    // A launcher that is told to stop may close its end of the pipe first.
    if (::poll(events, stopping ? 2 : 3, -1) < 0 && errno != EINTR) return false;
    if (events[0].revents != 0) {
      ::kill(launcher, signals.take());
      stopping = true;
    } else if (!stopping && events[2].revents != 0) {
      char byte = 0;
      return ::read(ready.get(), &byte, 1) == 1;
    } else if (events[1].revents != 0) {
      return false;
    }
  }
}

// As the launcher has recorded them: it has chosen the ports that the file leaves open.
std::vector<std::string> recordedTargets(const cluster::JobSpec& job) {
  ChosenAddresses addresses;
  const LaunchRecord record = lastLaunch(job.run_dir);
  for (const TaskId id : allTasks(job.cluster))
    for (const RecordedTask& task : record.tasks)
      if (task.name == id.name()) addresses[id] = task.address;
  return targetsOf(job.cluster, addresses);
}

// The job as the verbs are to name it in a shell.
std::string jobWords(const fs::path& cluster_file, const std::optional<fs::path>& run_dir) {
  DTF_CHECK(!cluster_file.empty());
  std::string words = shellQuote(cluster_file.string());
  if (run_dir) words += " --run-dir " + shellQuote(run_dir->string());
  return words;
}

void sayReady(const cluster::JobSpec& job, bool serves, const std::string& name, pid_t pid,
              bool json) {
  const std::vector<std::string> targets =
      serves ? recordedTargets(job) : std::vector<std::string>{};
  if (json) {
    Json said = {{"job", job.job}, {"run_dir", job.run_dir.string()}, {"pid", pid}};
    if (serves) said["targets"] = targets;
    return printEvent("detached", said);
  }
  const std::string url = cluster::metricsUrl(job, kChief);
  print(
      fmt::format("{}: {}, dtf-launch has pid {}\n"
                  "  dtf-launch status {}\n  dtf-launch attach {}\n  dtf-launch stop {}\n{}",
                  job.job, serves ? servingText(targets) : "runs", pid, name, name, name,
                  url.empty() ? "" : "  page " + url + "\n"));
}

int awaitExit(pid_t pid) {
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return ExitStatus::fromWait(status).shellCode();
}

// Of a launch that was never ready: its summary, where it came that far.
void sayFailed(const cluster::JobSpec& job, int attempt, int code) {
  const Json summary = readSummary(job.run_dir);
  const bool is_its_own = countOf(summary, "attempt") == static_cast<uint64_t>(attempt);
  if (!is_its_own || countOf(summary, "exit_code") != code)
    return printEvent("error", {{"code", exitCodeWord(code)},
                                {"exit_code", code},
                                {"message", "the job could not be started: see stderr"}});
  printEvent("summary", summary);
}

}  // namespace

fs::path launcherLog(const fs::path& logs, int attempt) {
  return logs / fmt::format("dtf-launch.{}.log", attempt);
}

int launchDetached(const cluster::JobSpec& job, LaunchOptions options, const fs::path& cluster_file,
                   const std::optional<fs::path>& run_dir) {
  DTF_CHECK(!options.on_ready);
  const fs::path logs = job.run_dir / "logs";
  makeWritableFolder(logs);
  options.attempt = nextAttempt(logs);
  const bool json = std::exchange(options.json, false);  // its stdout is the log
  const fs::path file = launcherLog(logs, *options.attempt);
  const Fd log = openLog(file);
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0)
    throw Error(ErrorCode::kUnavailable, "cannot make a pipe: " + shortageText(errno));
  const Fd ready(ends[0]);
  Fd tell(ends[1]);
  HeldSignals signals;
  const pid_t pid = ::fork();
  if (pid < 0)
    throw Error(ErrorCode::kUnavailable, "cannot start a process: " + shortageText(errno));
  if (pid == 0) {
    signals.release();
    runChild(job, options, log, std::move(tell));
  }
  tell.reset();
  const Fd exited = openPidfd(pid);
  // Without it a launcher that hangs could not be stopped from here: poll() would pass it over.
  if (!exited.valid()) ::kill(pid, SIGTERM);
  if (exited.valid() && awaitReady(ready, signals, exited, pid)) {
    sayReady(job, options.plan.serves, jobWords(cluster_file, run_dir), pid, json);
    return 0;
  }
  const int code = awaitExit(pid);
  printBounded(STDERR_FILENO, readFile(file, kDetachedSaysMax));
  // Without a task it is no attempt, and all that it says has just been shown.
  if (newestAttempt(logs) < *options.attempt) ::unlink(file.c_str());
  if (json) sayFailed(job, *options.attempt, code);
  return code;
}

}  // namespace dtf::launcher
