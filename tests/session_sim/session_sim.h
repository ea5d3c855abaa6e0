#pragma once

// A whole world of sessions in one thread: serving tasks, their clients, the network between them,
// and the faults of a plan. Every event is a pure function of the plan.

#include <kj/async.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/runtime/kernel.h"
#include "tests/session_sim/served_task_sim.h"
#include "tests/session_sim/session_client_sim.h"
#include "tests/session_sim/session_plan.h"
#include "tests/session_sim/stranger.h"
#include "tests/sim/network.h"
#include "tests/support/simulated_disk.h"

namespace dtf::sim {

struct SessionReport {
  std::vector<std::string> problems;  // broken promises, each with its time; empty: all kept
  uint64_t hash = 0;                  // over all events and their times
  uint64_t events = 0;
  double virtual_seconds = 0;
  uint32_t faults = 0;  // that hit their target
  uint32_t task_restarts = 0, client_restarts = 0;
  ClientTally clients;  // of all together
  StrangerTally stranger;
  SessionReport& operator+=(const SessionReport& other);  // but problems and hash
  std::string text() const;
};

// Owns: the world. Call run() once.
class SessionSim {
 public:
  // `print`: is given each line of the event log as it happens; may be null.
  SessionSim(SessionPlan plan, std::function<void(const std::string&)> print);
  ~SessionSim() noexcept(false);

  SessionReport run();

 private:
  struct Task {
    uint32_t started = 0;                    // processes so far
    std::unique_ptr<ServedTaskSim> process;  // null: killed, not started again yet
  };
  struct Client {
    ClientTally tally;
    std::unique_ptr<SessionClientSim> process;  // likewise, or it has done its steps
  };

  void log(const std::string& line);
  void complain(const std::string& what);
  void startTask(size_t index);
  void startClient(uint32_t index);
  void endClient(Client& client, bool is_killed);
  void onClientEnded(uint32_t index);
  void apply(const SessionFault& fault);
  void killTask(size_t index, Duration until_restart);
  void freeze(const ProcessRef& process, Duration length);
  void judgeRest();
  void pause(Duration time);

  const SessionPlan plan_;
  const std::function<void(const std::string&)> print_;
  Random random_;
  ServedTaskSim::Cpus cpus_;  // of each task alike
  runtime::KernelTable kernels_;
  Scheduler scheduler_;
  kj::EventLoop loop_{scheduler_};
  kj::WaitScope wait_scope_{loop_};
  kj::FiberPool fibers_{1 << 20};
  Network network_;
  testing::SimulatedDisk disk_;
  const Environment environment_{scheduler_, network_, random_, disk_};
  std::vector<Task> tasks_;  // as tasksOf(plan_)
  std::vector<Client> clients_;
  std::unique_ptr<Stranger> stranger_;
  std::vector<TimePoint> losses_;  // of tasks and connections
  bool is_over_ = false;           // all clients have done their steps
  SessionReport report_;
  kj::Own<kj::PromiseFulfiller<void>> over_;
};

// Runs the plan of `seed`.
SessionReport runSessionSeed(uint64_t seed);

}  // namespace dtf::sim
