#pragma once

// Where tasks run: on this host (local_host.h), or on others over ssh or by Slurm
// (ssh/ssh_hosts.h). A launch uses either through this interface; what happens to the processes
// comes back as events.

#include <sys/types.h>

#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "common/base/clock.h"
#include "common/base/error.h"
#include "common/cluster/spec.h"
#include "launcher/exit_status.h"
#include "launcher/launch_plan.h"
#include "launcher/listen_sockets.h"

namespace boost::asio {
class io_context;
}

namespace dtf::launcher {

// Told on the loop, for each process in this order: onStarted() or onStartFailed(), any number of
// onOutput() and onNotices(), onExited(). Tasks are counted as in the plan.
class TaskEvents {
 public:
  virtual ~TaskEvents() = default;
  virtual void onStarted(size_t task, pid_t pid) = 0;  // `pid`: 0 for one on another host
  virtual void onStartFailed(size_t task, const Error& error) = 0;
  virtual void onOutput(size_t task, std::string_view bytes) = 0;   // of its stdout and stderr
  virtual void onNotices(size_t task, std::string_view bytes) = 0;  // of common/base/notify.h
  virtual void onExited(size_t task, ExitStatus status) = 0;
  // Something about a host that a person should know: a complete sentence.
  virtual void onHostTold(const std::string& text) = 0;
  // The same, about what goes as it should.
  virtual void onHostNews(const std::string& text) = 0;
};

// Of whoever starts no process on the hosts that it asks: nothing is told.
class NoTaskEvents : public TaskEvents {
 public:
  void onStarted(size_t /*task*/, pid_t /*pid*/) final {}
  void onStartFailed(size_t /*task*/, const Error& /*error*/) final {}
  void onOutput(size_t /*task*/, std::string_view /*bytes*/) final {}
  void onNotices(size_t /*task*/, std::string_view /*bytes*/) final {}
  void onExited(size_t /*task*/, ExitStatus /*status*/) final {}
  void onHostTold(const std::string& /*text*/) final {}
  void onHostNews(const std::string& /*text*/) final {}
};

// Threads: loop-thread only.
class TaskHost {
 public:
  virtual ~TaskHost() = default;

  // Has a socket listen for each task before any is started. Returns the addresses that tasks with
  // the port `auto` were given. Called once.
  // Blocks: on other hosts, until `give_up` is true; it is asked often.
  // Errors: those of ListenSockets::open(); kUnavailable, kPermission or kBadConfig for a host that
  // can't be used.
  virtual ChosenAddresses listen(const TaskSpecs& tasks, bool reachable,
                                 const std::function<bool()>& give_up) = 0;

  // Starts a process of the task, which has none.
  virtual void start(size_t task, const TaskCommand& command) = 0;
  // Sends `signal` to the process and to all it has started. Without a process nothing happens.
  virtual void signal(size_t task, int signal) = 0;
  // The task is not started again: nobody is to wait for an answer on its port.
  virtual void release(size_t task, TaskId id) = 0;
  // Whether its process is stopped by a signal or a debugger, as far as is known.
  virtual bool suspended(size_t task) const = 0;
  // To be called about twice a second.
  virtual void look() = 0;
  // Brings the checkpoint of `step` to the run directory here, where the chief has one of its own,
  // once no task is left. False: all tasks are on this host.
  // Blocks: running the loop, until it is here or `give_up` is true, which is asked often.
  // Errors: kUnavailable, kDeadline, kBadData, kCannotWrite; what was here before is still there.
  virtual bool fetchModel(uint64_t /*step*/, const std::function<bool()>& /*give_up*/) {
    return false;
  }
  // The job is over: close() removes its snapshots from the memory of other hosts. Else they stay.
  virtual void dropSnapshots() {}
  // Ends what is left; a host that does not answer is left to its own clock. Told meanwhile is how
  // processes end, and nothing after it.
  // Blocks: some seconds at most.
  virtual void close() = 0;
};

// What other hosts are sent.
struct JobFiles {
  std::map<std::filesystem::path, std::string>
      texts;  // that the job was read from, by absolute path
  std::map<std::string, std::filesystem::path> programs;  // with launch.copy.programs: by name
};

// Where the tasks of `job` run. All but `files` is borrowed.
// Before any descriptor is opened that must not live on (group_guard.h).
std::unique_ptr<TaskHost> makeTaskHost(const cluster::JobSpec& job, const JobFiles& files,
                                       boost::asio::io_context& io, const Clock& clock,
                                       TaskEvents& events);

}  // namespace dtf::launcher
