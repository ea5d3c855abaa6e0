#pragma once

// The tasks of this host: sockets, processes, what they say, and how they end. dtf-launch has one
// for `via: local`, dtf-agent one for the tasks that it is told to run.

#include <map>
#include <memory>

#include "common/base/clock.h"
#include "launcher/fd_watch.h"
#include "launcher/group_guard.h"
#include "launcher/memory_kills.h"
#include "launcher/pipe_reader.h"
#include "launcher/spawner.h"
#include "launcher/task_host.h"

namespace dtf::launcher {

// Owns: the sockets and the processes, which can't outlive this one.
// Borrows: `io`, `clock`, `events` (must outlive this).
// Threads: loop-thread only, of the thread that lives as long as the process (spawner.h).
// Blocks: in start() until the process has called exec.
class LocalHost : public TaskHost {
 public:
  // Before any descriptor is opened that must not live on (group_guard.h).
  LocalHost(boost::asio::io_context& io, const Clock& clock, TaskEvents& events);
  ~LocalHost() override;

  ChosenAddresses listen(const TaskSpecs& tasks, bool reachable,
                         const std::function<bool()>& give_up) override;
  void start(size_t task, const TaskCommand& command) override;
  void signal(size_t task, int signal) override;
  void release(size_t task, TaskId id) override;
  bool suspended(size_t task) const override;
  void look() override;
  void close() override;

 private:
  struct Running {
    SpawnedTask process;
    std::unique_ptr<PipeReader> output;
    std::unique_ptr<PipeReader> notices;
    std::unique_ptr<FdWatch> exited;
    bool killed = false;  // by us
  };
  void onExit(size_t task);

  boost::asio::io_context& io_;
  TaskEvents& events_;
  GroupGuard guard_;
  Spawner spawner_;
  ListenSockets sockets_;
  MemoryKills memory_kills_;
  std::map<size_t, Running> running_;  // those that have a process
};

}  // namespace dtf::launcher
