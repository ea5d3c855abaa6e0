#pragma once

// A whole job in one thread: ps and worker processes, their network, a launcher that starts workers
// again, and the faults of a plan. What happens is a pure function of the plan.

#include <kj/async.h>

#include <list>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tests/sim/ledger.h"
#include "tests/sim/plan.h"
#include "tests/sim/sim_ps.h"
#include "tests/sim/sim_worker.h"
#include "tests/support/simulated_disk.h"

namespace dtf::sim {

struct Report {
  std::vector<std::string> problems;  // broken promises, each with its time; empty: all kept
  bool finished = false;              // every ps ended without an error
  std::vector<std::string> errors;    // why processes ended
  uint64_t hash = 0;                  // over all events and their times
  uint64_t events = 0;
  double virtual_seconds = 0;
  uint32_t restarts = 0;  // of workers
  uint32_t faults = 0;    // that met their target
  // Pushes answered as applied and as stale, and pushes of fenced processes.
  uint64_t applied = 0;
  uint64_t stale = 0;
  uint64_t fenced = 0;
  uint64_t checkpoints = 0;  // that are on the disk after its power was cut
};

// Owns: the world.  Call run() once.
class ClusterSim {
 public:
  // `print`: is given each line of the event log as it happens; may be null.
  ClusterSim(const Plan& plan, std::function<void(const std::string&)> print);
  ~ClusterSim() noexcept(false);

  Report run();

 private:
  struct Rank {
    uint32_t started = 0;  // processes so far
    std::list<std::unique_ptr<SimWorker>> alive;
  };

  void log(const std::string& line);
  void complain(const std::string& what);
  void startPs(uint32_t index);
  void startWorker(uint32_t rank, uint32_t number);
  void startWorkerLater(uint32_t rank);
  void onPsEnded(SimPs& ps);
  void onJoined(SimWorker& worker);
  void onWorkerEnded(SimWorker& worker);
  void checkError(const std::string& who, const Error& error);
  void destroy(SimWorker& worker);
  void apply(const Fault& fault);
  void killWorker(uint32_t rank);
  void killPs(uint32_t index);
  void freezeWorker(const Fault& fault);
  void endIfOver();
  void judge();
  void judgeCheckpoints();

  const Plan plan_;
  const std::function<void(const std::string&)> print_;
  Random random_;
  Scheduler scheduler_;
  kj::EventLoop loop_{scheduler_};
  kj::WaitScope wait_scope_{loop_};
  kj::FiberPool fibers_{256 << 10};
  Network network_;
  testing::SimulatedDisk disk_;
  const Environment environment_{scheduler_, network_, random_, disk_};
  Ledger ledger_;
  std::set<uint64_t> saved_;  // steps whose checkpoint was committed
  std::vector<std::unique_ptr<SimPs>> ps_;
  std::vector<Rank> ranks_;
  std::vector<std::optional<Error>> ps_errors_;
  bool ps_killed_ = false;
  bool ps_was_frozen_ = false;
  bool out_of_processes_ = false;
  Report report_;
  kj::Own<kj::PromiseFulfiller<void>> over_;
};

// The plan of `seed`, run.
Report runSeed(uint64_t seed);

}  // namespace dtf::sim
