#include "launcher/spawner.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/base/host_limits.h"
#include "common/base/text.h"

namespace dtf::launcher {

namespace {

// The descriptors a task is born with, after stdin, stdout and stderr.
constexpr int kListenFd = 3;
constexpr int kNotifyFd = 4;
constexpr int kExecErrorFd = 5;  // closed by a successful exec
constexpr int kFirstSpareFd = 10;

// Where the program of a task is missing.
constexpr std::string_view kTaskAdvice =
    "build it (ninja -C build), install dtf, or name its folder: with --bin-dir DIR, over ssh with "
    "launch.binary_dir";

struct Pipe {
  Fd read_end;
  Fd write_end;
};

[[noreturn]] void failSpawn(const std::string& name, const char* what, int error) {
  throw Error(ErrorCode::kUnavailable,
              "cannot start " + name + ": " + what + ": " + shortageText(error));
}

Pipe makePipe(const std::string& name) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) failSpawn(name, "pipe", errno);
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
  const char* folder;  // null: the launcher's
  bool own_session;    // it has no terminal to ask at
  char* const* argv;
  char* const* envp;
  int in_fd;  // -1: /dev/null
  int out_fd;
  int err_fd;
  int listen_fd;  // -1: none
  int notify_fd;  // likewise
  int error_fd;
  std::string_view advice;  // where there is no such program
};

[[noreturn]] void failChild(int error_fd, int error) {
  [[maybe_unused]] const ssize_t written = ::write(error_fd, &error, sizeof error);
  ::_exit(127);
}

// Descriptors first move out of the way of their final numbers, then into place: a source may be
// another's target.
void placeDescriptors(ChildSetup& setup) {
  if (setup.in_fd < 0) setup.in_fd = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (setup.in_fd < 0) failChild(setup.error_fd, errno);
  int sources[] = {setup.in_fd,     setup.out_fd,    setup.err_fd,
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
  setup.own_session ? ::setsid() : ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != setup.launcher) ::_exit(127);  // it died before the line above
  for (int signal = 1; signal < NSIG; ++signal) ::signal(signal, SIG_DFL);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  if (setup.folder != nullptr && ::chdir(setup.folder) != 0) failChild(setup.error_fd, errno);
  placeDescriptors(setup);
  ::execve(setup.argv[0], setup.argv, setup.envp);
  failChild(setup.error_fd, errno);
}

// Only where the program is missing or not one does a build help.
[[noreturn]] void failExec(const std::string& name, const std::string& program,
                           std::string_view advice, int error) {
  const std::string what =
      "cannot start " + name + ": cannot run " + program + ": " + shortageText(error);
  switch (error) {
    case ENOENT:
    case ENOTDIR:
    case ENOEXEC:
      throw Error(ErrorCode::kBadConfig, what + "\n  " + std::string(advice));
    case EACCES:
    case EPERM:
      throw Error(ErrorCode::kPermission,
                  what + "\n  it must be executable: ls -l " + shellQuote(program));
    default:
      throw Error(ErrorCode::kUnavailable, what);
  }
}

// Waits for exec: end of file is success.
void awaitExec(const std::string& name, const ChildSetup& setup, pid_t pid, const Fd& error_pipe) {
  int error = 0;
  ssize_t n;
  do {
    n = ::read(error_pipe.get(), &error, sizeof error);
  } while (n < 0 && errno == EINTR);
  if (n == 0) return;
  ::waitpid(pid, nullptr, 0);
  if (n != sizeof error) failSpawn(name, "the new process reported nothing", EIO);
  failExec(name, setup.argv[0], setup.advice, error);
}

struct Child {
  pid_t pid;
  Fd exited;
};

// Forks and waits until the child has called exec. `setup` lacks what is filled in here.
Child start(const std::string& name, ChildSetup setup) {
  Pipe exec_error = makePipe(name);
  setup.launcher = ::getpid();
  setup.error_fd = exec_error.write_end.get();
  // A signal that comes between fork and the child's own dispositions must not run the launcher's
  // handlers twice.
  sigset_t all, before;
  ::sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, &before);
  const pid_t pid = ::fork();
  if (pid == 0) runChild(setup);
  const int fork_error = errno;
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
  if (pid < 0) failSpawn(name, "fork", fork_error);
  // The child does it too; whoever comes first, it is done when either goes on. The leader of a
  // group can't have a session of its own.
  if (!setup.own_session) ::setpgid(pid, pid);
  exec_error.write_end.reset();
  awaitExec(name, setup, pid, exec_error.read_end);
  Fd exited = openPidfd(pid);
  if (!exited.valid()) {
    const int error = errno;
    ::kill(-pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
    failSpawn(name, "pidfd_open", error);
  }
  return {pid, std::move(exited)};
}

// The program of that name in the folders of PATH; where there is none the name itself, for exec to
// say so.
std::string inPath(const std::string& name) {
  const char* path = std::getenv("PATH");
  for (const std::string& folder : split(path == nullptr ? "" : path, ':')) {
    const std::string file = folder + "/" + name;
    if (!folder.empty() && ::access(file.c_str(), X_OK) == 0) return file;
  }
  return name;
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
  const std::string name = command.id.name();
  Pipe output = makePipe(name);
  Pipe notify = makePipe(name);
  std::vector<std::string> words = command.argv;
  std::vector<std::string> environment = environmentOf(command, listen_socket.valid());
  const std::vector<char*> argv = pointersOf(words);
  const std::vector<char*> envp = pointersOf(environment);
  ChildSetup setup{};
  setup.folder = command.folder.c_str();
  setup.argv = argv.data();
  setup.envp = envp.data();
  setup.advice = kTaskAdvice;
  setup.in_fd = -1;
  setup.out_fd = setup.err_fd = output.write_end.get();
  setup.listen_fd = listen_socket.get();
  setup.notify_fd = notify.write_end.get();
  Child child = start(name, setup);
  return SpawnedTask{child.pid, std::move(child.exited), std::move(output.read_end),
                     std::move(notify.read_end)};
}

SpawnedProgram Spawner::run(const std::vector<std::string>& argv) {
  DTF_CHECK(!argv.empty());
  const std::string& name = argv[0];
  Pipe in = makePipe(name), out = makePipe(name), err = makePipe(name);
  std::vector<std::string> words = argv;
  words[0] = inPath(name);
  const std::vector<char*> pointers = pointersOf(words);
  ChildSetup setup{};
  setup.argv = pointers.data();
  setup.envp = environ;
  setup.own_session = true;
  setup.advice = "install it, or add its folder to PATH";
  setup.in_fd = in.read_end.get();
  setup.out_fd = out.write_end.get();
  setup.err_fd = err.write_end.get();
  setup.listen_fd = setup.notify_fd = -1;
  Child child = start(name, setup);
  return SpawnedProgram{child.pid, std::move(child.exited), std::move(in.write_end),
                        std::move(out.read_end), std::move(err.read_end)};
}

void Spawner::signal(pid_t pid, int signal) {
  DTF_CHECK(pid > 1);  // -1 would be every process of this user
  DTF_CHECK(signal > 0);
  ::kill(-pid, signal);
}

ExitStatus Spawner::reap(pid_t pid) {
  DTF_CHECK(pid > 1);
  // Before waitpid(): as long as the leader is a zombie, the number of its group can't belong to
  // anyone else.
  ::kill(-pid, SIGKILL);
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return ExitStatus::fromWait(status);
}

}  // namespace dtf::launcher
