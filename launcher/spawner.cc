#include "launcher/spawner.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "common/base/check.h"
#include "common/base/error.h"

namespace dtf::launcher {

namespace {

// The descriptors a task is born with, after stdin, stdout and stderr.
constexpr int kListenFd = 3;
constexpr int kNotifyFd = 4;
constexpr int kExecErrorFd = 5;  // closed by a successful exec
constexpr int kFirstSpareFd = 10;

struct Pipe {
  Fd read_end;
  Fd write_end;
};

[[noreturn]] void failSpawn(TaskId id, const char* what, int error) {
  const bool no_descriptor = error == EMFILE || error == ENFILE;
  throw Error(ErrorCode::kUnavailable,
              "cannot start " + id.name() + ": " + what + ": " + errnoText(error) +
                  (no_descriptor ? "\n  raise the limit of open files: ulimit -n" : ""));
}

Pipe makePipe(TaskId id) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) failSpawn(id, "pipe", errno);
  return Pipe{Fd(ends[0]), Fd(ends[1])};
}

std::vector<char*> pointersOf(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

bool isNamed(const std::string& assignment, const std::string& name) {
  return assignment.size() > name.size() && assignment[name.size()] == '=' &&
         assignment.compare(0, name.size(), name) == 0;
}

// The launcher's environment, with the task's additions in the place of what they replace.
std::vector<std::string> environmentOf(const TaskCommand& command, bool listens) {
  std::map<std::string, std::string> additions = command.env;
  additions["DTF_NOTIFY_FD"] = std::to_string(kNotifyFd);
  additions["DTF_LISTEN_FD"] = listens ? std::to_string(kListenFd) : "";
  std::vector<std::string> environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string assignment = *entry;
    bool replaced = false;
    for (const auto& [name, value] : additions) replaced = replaced || isNamed(assignment, name);
    if (!replaced) environment.push_back(assignment);
  }
  if (!listens) additions.erase("DTF_LISTEN_FD");
  for (const auto& [name, value] : additions) environment.push_back(name + "=" + value);
  return environment;
}

// What the child needs, made before fork: between fork and exec it only makes system calls.
struct ChildSetup {
  pid_t launcher;
  const char* folder;
  char* const* argv;
  char* const* envp;
  int listen_fd;  // -1: none
  int notify_fd;
  int output_fd;
  int error_fd;
};

[[noreturn]] void failChild(int error_fd, int error) {
  [[maybe_unused]] const ssize_t written = ::write(error_fd, &error, sizeof error);
  ::_exit(127);
}

// Descriptors first move out of the way of their final numbers, then into place: a source may be
// another's target.
void placeDescriptors(ChildSetup& setup) {
  const int null_fd = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (null_fd < 0) failChild(setup.error_fd, errno);
  int sources[] = {null_fd,         setup.output_fd, setup.output_fd,
                   setup.listen_fd, setup.notify_fd, setup.error_fd};
  for (int& source : sources) {
    if (source < 0) continue;
    source = ::fcntl(source, F_DUPFD_CLOEXEC, kFirstSpareFd);
    if (source < 0) failChild(setup.error_fd, errno);
  }
  setup.error_fd = sources[kExecErrorFd];
  for (int target = 0; target <= kExecErrorFd; ++target) {
    if (sources[target] < 0)
      ::close(target);
    else if (::dup2(sources[target], target) < 0)
      failChild(setup.error_fd, errno);
  }
  setup.error_fd = kExecErrorFd;
  ::fcntl(kExecErrorFd, F_SETFD, FD_CLOEXEC);
  if (::close_range(kExecErrorFd + 1, ~0U, 0) != 0) failChild(kExecErrorFd, errno);
}

[[noreturn]] void runChild(ChildSetup setup) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != setup.launcher) ::_exit(127);  // it died before the line above
  for (int signal = 1; signal < NSIG; ++signal) ::signal(signal, SIG_DFL);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  if (::chdir(setup.folder) != 0) failChild(setup.error_fd, errno);
  placeDescriptors(setup);
  ::execve(setup.argv[0], setup.argv, setup.envp);
  failChild(setup.error_fd, errno);
}

// Only where the program is missing or not one does a build help.
[[noreturn]] void failExec(const TaskCommand& command, int error) {
  const std::string what = "cannot start " + command.id.name() + ": cannot run " + command.argv[0] +
                           ": " + errnoText(error);
  switch (error) {
    case ENOENT:
    case ENOTDIR:
    case ENOEXEC:
      throw Error(ErrorCode::kBadConfig, what +
                                             "\n  build it (ninja -C build), install dtf, or name "
                                             "its folder with --bin-dir DIR");
    case EACCES:
    case EPERM:
      throw Error(ErrorCode::kPermission,
                  what + "\n  it must be executable: ls -l " + shellQuote(command.argv[0]));
    case EMFILE:
    case ENFILE:
      throw Error(ErrorCode::kUnavailable, what + "\n  raise the limit of open files: ulimit -n");
    default:
      throw Error(ErrorCode::kUnavailable, what);
  }
}

// Waits for exec: end of file is success.
void awaitExec(const TaskCommand& command, pid_t pid, const Fd& error_pipe) {
  int error = 0;
  ssize_t n;
  do {
    n = ::read(error_pipe.get(), &error, sizeof error);
  } while (n < 0 && errno == EINTR);
  if (n == 0) return;
  ::waitpid(pid, nullptr, 0);
  if (n != sizeof error) failSpawn(command.id, "the new process said nothing", EIO);
  failExec(command, error);
}

}  // namespace

// By number: <sys/pidfd.h> of glibc 2.36 can't be used from C++ (it lacks extern "C").
Fd openPidfd(pid_t pid) {
  DTF_CHECK(pid > 1);
  return Fd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
}

SpawnedTask Spawner::spawn(const TaskCommand& command, Fd listen_socket) {
  DTF_CHECK_MSG(!command.argv.empty(), command.id.name());
  DTF_CHECK_MSG(command.folder.is_absolute(), command.folder.string());
  Pipe output = makePipe(command.id);
  Pipe notify = makePipe(command.id);
  Pipe exec_error = makePipe(command.id);
  std::vector<std::string> words = command.argv;
  std::vector<std::string> environment = environmentOf(command, listen_socket.valid());
  const std::vector<char*> argv = pointersOf(words);
  const std::vector<char*> envp = pointersOf(environment);
  const ChildSetup setup{::getpid(),
                         command.folder.c_str(),
                         argv.data(),
                         envp.data(),
                         listen_socket.get(),
                         notify.write_end.get(),
                         output.write_end.get(),
                         exec_error.write_end.get()};
  // A signal that comes between fork and the child's own dispositions must not run the launcher's
  // handlers twice.
  sigset_t all, before;
  ::sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, &before);
  const pid_t pid = ::fork();
  if (pid == 0) runChild(setup);
  const int fork_error = errno;
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
  if (pid < 0) failSpawn(command.id, "fork", fork_error);
  ::setpgid(pid,
            pid);  // the child does it too; whoever comes first, it is done when either goes on
  exec_error.write_end.reset();
  awaitExec(command, pid, exec_error.read_end);
  Fd exited = openPidfd(pid);
  if (!exited.valid()) {
    const int error = errno;
    ::kill(-pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
    failSpawn(command.id, "pidfd_open", error);
  }
  return SpawnedTask{pid, std::move(exited), std::move(output.read_end),
                     std::move(notify.read_end)};
}

void Spawner::signal(const SpawnedTask& task, int signal) {
  DTF_CHECK(task.pid > 1);  // -1 would be every process of this user
  DTF_CHECK(signal > 0);
  ::kill(-task.pid, signal);
}

ExitStatus Spawner::reap(const SpawnedTask& task) {
  DTF_CHECK(task.pid > 1);
  // Before waitpid(): as long as the leader is a zombie, the number of its group can't belong to
  // anyone else.
  ::kill(-task.pid, SIGKILL);
  int status = 0;
  while (::waitpid(task.pid, &status, 0) < 0 && errno == EINTR) {
  }
  return ExitStatus::fromWait(status);
}

}  // namespace dtf::launcher
