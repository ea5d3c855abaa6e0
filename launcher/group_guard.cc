#include "launcher/group_guard.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <set>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/base/host_limits.h"

namespace dtf::launcher {

namespace {

// Reads records until the launcher is gone: a group to guard, or, negative, one that has ended.
[[noreturn]] void guardGroups(int pipe) {
  ::setsid();  // out of reach of Ctrl-C, and of a kill of the launcher's process group
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) ::signal(signal, SIG_IGN);
  ::prctl(PR_SET_NAME, "dtf-guard");
  ::dup2(pipe, STDIN_FILENO);
  ::close_range(STDIN_FILENO + 1, ~0U, 0);
  std::set<pid_t> groups;
  pid_t record = 0;
  for (;;) {
    const ssize_t n = ::read(STDIN_FILENO, &record, sizeof record);
    if (n < 0 && errno == EINTR) continue;
    if (n != sizeof record) break;
    if (record > 0)
      groups.insert(record);
    else
      groups.erase(-record);
  }
  for (const pid_t group : groups) ::kill(-group, SIGKILL);
  ::_exit(0);
}

}  // namespace

GroupGuard::GroupGuard() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0)
    throw Error(ErrorCode::kUnavailable, "cannot make a pipe: " + shortageText(errno));
  const Fd read_end(ends[0]);
  pipe_ = Fd(ends[1]);
  pid_ = ::fork();
  if (pid_ < 0)
    throw Error(ErrorCode::kUnavailable, "cannot start a process: " + shortageText(errno));
  if (pid_ == 0) guardGroups(read_end.get());
}

GroupGuard::~GroupGuard() {
  pipe_.reset();
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

void GroupGuard::add(pid_t group) {
  DTF_CHECK(group > 1);  // the guard will kill it: 1 would be every process of this user
  send(group);
}
void GroupGuard::remove(pid_t group) {
  DTF_CHECK(group > 1);
  send(-group);
}

void GroupGuard::send(pid_t record) {
  DTF_CHECK(pipe_.valid());
  // A guard that someone killed costs its service, not the job; SIGPIPE is ignored.
  [[maybe_unused]] const ssize_t written = ::write(pipe_.get(), &record, sizeof record);
}

}  // namespace dtf::launcher
