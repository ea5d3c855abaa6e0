#pragma once

// A whole training by synchronous replicas in one thread: serving tasks, clients with a supervisor
// each, the network between them, the chief's disk, and the faults of a plan. Its promises: each
// update is applied once or not at all on all ps, a stale gradient is dropped, nobody hangs, and
// each checkpoint has the bytes of the undisturbed training.

#include <kj/async.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/runtime/kernel.h"
#include "tests/session_sim/replica_client_sim.h"
#include "tests/session_sim/replicas_plan.h"
#include "tests/session_sim/served_task_sim.h"
#include "tests/sim/network.h"
#include "tests/support/simulated_disk.h"

namespace dtf::sim {

struct ReplicasReport {
  std::vector<std::string> problems;  // broken promises; empty: all kept
  uint64_t hash = 0;                  // over all events and their times
  uint64_t events = 0;
  double virtual_seconds = 0;
  uint32_t faults = 0;  // that hit their target
  uint32_t task_kills = 0, client_kills = 0, disk_crashes = 0, freezes = 0;
  uint32_t programs_failed = 0;  // that ended with an error, and were started again
  uint32_t left_alone = 0;       // clients whose chief was gone, and its model with a ps
  uint32_t checkpoints = 0;      // that were compared
  ReplicaTally clients;          // of all together
  ReplicasReport& operator+=(const ReplicasReport& other);  // but problems and hash
  std::string text() const;
};

// Owns: the world. Call run() once.
class ReplicasSim {
 public:
  // `print`: is given each line of the event log as it happens; may be null.
  ReplicasSim(ReplicasPlan plan, std::function<void(const std::string&)> print);
  ~ReplicasSim() noexcept(false);

  ReplicasReport run();

 private:
  struct Task {
    uint32_t started = 0;                    // processes so far
    std::unique_ptr<ServedTaskSim> process;  // null: killed, not started again yet
  };
  struct Client {
    ReplicaTally tally;
    std::unique_ptr<ReplicaClientSim> process;  // likewise, or it has ended
    uint32_t failed = 0;                        // processes that ended with an error
    bool has_ended = false;
  };

  void log(const std::string& line);
  void complain(const std::string& what);
  void startTask(size_t index);
  void startClient(uint32_t rank);
  void endClient(Client& client, bool is_killed);
  void onClientEnded(uint32_t rank, const ReplicaClientSim::End& end);
  void onProgramFailed(uint32_t rank, const Error& error);
  void startAgain(uint32_t rank, Duration later);
  void noteEnd(uint32_t rank);
  void plant(const ReplicasFault& fault);
  void apply(const ReplicasFault& fault);
  void applyTo(const SessionFault& fault);
  void killTask(size_t index, Duration until_restart);
  void watch();
  void judgeCheckpoints();
  void pause(Duration time);

  const ReplicasPlan plan_;
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
  std::vector<Task> tasks_;  // as tasksOf(plan_.world)
  std::vector<Client> clients_;
  TimePoint quiet_since_{};  // the end of the last fault, or of a program's restart
  bool is_over_ = false;     // all clients have ended
  ReplicasReport report_;
  kj::Own<kj::PromiseFulfiller<void>> over_;
};

// Runs the plan of `seed`.
ReplicasReport runReplicasSeed(uint64_t seed);

}  // namespace dtf::sim
