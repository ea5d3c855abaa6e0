#pragma once

// Starts the process of a task so that it can't outlive the launcher, and ends it with everything
// it started.

#include <sys/types.h>

#include "common/base/file.h"
#include "launcher/exit_status.h"
#include "launcher/launch_plan.h"

namespace dtf::launcher {

// A process that was started. Move-only. The descriptors are the launcher's ends.
struct SpawnedTask {
  pid_t pid = -1;
  Fd exited;  // readable when the process has ended
  Fd output;  // its stdout and stderr
  Fd notify;  // its lines of common/base/notify.h
};

// A program that is no task, and the launcher's ends of its three streams. Move-only.
struct SpawnedProgram {
  pid_t pid = -1;
  Fd exited;
  Fd in;
  Fd out;
  Fd err;
};

// A descriptor that is readable once the process has ended; an invalid one when there is none left
// for it, with errno set.
Fd openPidfd(pid_t pid);

// Processes on this host, by fork and exec, each the leader of its own process group:
// (1) the kernel kills it when the launcher dies, for whatever reason (PR_SET_PDEATHSIG);
// (2) it has the default signal mask and dispositions, /dev/null as stdin, and exactly the
//     descriptors 0 to 2, 3 (DTF_LISTEN_FD) and 4 (DTF_NOTIFY_FD);
// (3) nothing passes through a shell.
// Threads: loop-thread only.
// Blocks: in spawn(), until the new process has called exec.
class Spawner {
 public:
  // `listen_socket`: the task's own listening socket, which it finds in DTF_LISTEN_FD; the caller's
  // copy is closed.
  // Errors: kBadConfig or kPermission naming the path when the program can't be run; kUnavailable
  // when the host can't start another process, or has no descriptor or memory left for it.
  SpawnedTask spawn(const TaskCommand& command, Fd listen_socket);

  // Any other program, found in PATH; (1) to (3) hold for it, too, but for its streams: each is a
  // pipe to the launcher. It has a session of its own, so that neither it nor what it starts asks
  // at the terminal, where nobody expects a question.
  // Errors: as spawn().
  SpawnedProgram run(const std::vector<std::string>& argv);

  // Sends `signal` to the process and to all it started. None of them left is not an error.
  void signal(pid_t pid, int signal);

  // Call once `exited` is readable: ends what the process left behind, and says how it ended.
  ExitStatus reap(pid_t pid);
};

}  // namespace dtf::launcher
