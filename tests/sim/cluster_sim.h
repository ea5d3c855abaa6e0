#pragma once

// A whole job in one thread: ps and worker processes, their network, who starts them again
// (dtf-launch, or a service manager for a job started by hand), and the faults of a plan; then the
// same again on the disk that is left, for each further life. What happens is a pure function of
// the plan.

#include <kj/async.h>

#include <list>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/checkpoint/checkpoint_client.h"
#include "tests/sim/ledger.h"
#include "tests/sim/plan.h"
#include "tests/sim/sim_launcher.h"
#include "tests/sim/sim_ps.h"
#include "tests/sim/sim_worker.h"
#include "tests/support/simulated_disk.h"

namespace dtf::sim {

struct Report {
  std::vector<std::string> problems;  // broken promises, each with its time; empty: all kept
  bool finished = false;              // every ps ended without an error, in the last life
  std::vector<std::string> errors;    // why processes ended
  uint64_t hash = 0;                  // over all events and their times
  uint64_t events = 0;
  double virtual_seconds = 0;
  uint32_t restarts = 0;  // of workers
  uint32_t ps_restarts = 0;
  uint32_t went_back = 0;     // times that a job went back to a cut while it lived
  uint32_t to_snapshots = 0;  // times that one in memory was chosen
  uint32_t faults = 0;        // that met their target
  // Pushes answered as applied and as stale, and pushes of fenced processes.
  uint64_t applied = 0;
  uint64_t stale = 0;
  uint64_t fenced = 0;
  uint64_t checkpoints = 0;  // that were on the disk at the end of a life
  uint64_t lives = 0;
  uint64_t restored = 0;  // lives that went on from a checkpoint
  uint64_t stopped = 0;   // lives that were asked to end, and did
  uint64_t launched = 0;  // lives under dtf-launch, and those that it ended for a failure
  uint64_t given_up = 0;
  uint64_t missed = 0;             // backup workers, for good
  uint64_t refilled = 0;           // ps, from their replicas
  std::set<Fault::Since> moments;  // that were reached, with a fault of theirs
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
    uint32_t first = 0;    // of this life
    uint32_t newest = 0;   // the last that was started: one that is planned may come later
    std::list<std::unique_ptr<SimWorker>> alive;  // in the order of their starts
  };

  void log(const std::string& line);
  void complain(const std::string& what);
  // An event of this life; nothing once it is over.
  void afterInThisLife(Duration delay, std::function<void()> event);
  const Life& life() const { return plan_.lives[life_]; }
  void beginLife();
  void startPs(uint32_t index);
  void startWorker(uint32_t rank, uint32_t number);
  void startWorkerLater(uint32_t rank);
  bool mayStartWorker(uint32_t rank);
  // cluster_launch.cc: a job under dtf-launch.
  void beginLaunch();
  void tickLauncher();
  void startAgain(TaskId id);
  void signalTask(TaskId id, int number);
  void signalWorker(SimWorker& worker);
  bool mayFail() const { return out_of_processes_ || (launcher_ && launcher_->mayFail()); }
  void onUpdate(uint32_t index);
  void onPsEnded(SimPs& ps);
  void onJoined(SimWorker& worker);
  void onWorkerEnded(SimWorker& worker);
  void onRestored(bool held, std::optional<uint64_t> step);
  void onGoingBack(const checkpoint::GoingBack& target);
  void onRest(uint64_t step);
  void onMoment(const SimWorker& worker, Fault::Since moment, bool is_saved);
  void checkError(const std::string& who, const Error& error);
  void destroy(SimWorker& worker);
  void applySince(Fault::Since since);
  void apply(const Fault& fault);
  void cutOff(const Fault& fault);
  void breakReplicaLink(const Fault& fault);
  void killWorker(uint32_t rank);
  void endWorker(SimWorker& worker, launcher::ExitStatus status);
  void killPs(uint32_t index);
  void killAll();
  void stop(const Fault& fault);
  void freezeWorker(const Fault& fault);
  void endIfOver();
  void runLife();
  void judge();
  void judgeDisk();
  void judgeCheckpoint(uint64_t step);
  std::vector<SavedArena> readArenas(const std::filesystem::path& folder,
                                     const checkpoint::Manifest& manifest);
  std::vector<SavedArena> readSnapshots(const checkpoint::SnapshotName& name);

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
  // Of all lives. A step that is judged was whole at the end of a life, with what it must hold.
  std::set<uint64_t> saved_;  // steps whose checkpoint was committed
  std::set<uint64_t> judged_;
  // The newest checkpoint, which the next life must go on from.
  std::optional<uint64_t> newest_;
  uint64_t newest_epoch_ = 0;
  std::vector<SavedArena> newest_arenas_;
  // Of this life.
  size_t life_ = 0;
  TimePoint began_;
  std::unique_ptr<SimLauncher> launcher_;  // null: started by hand
  std::vector<std::unique_ptr<SimPs>> ps_;
  std::vector<Rank> ranks_;
  std::vector<uint32_t> ps_started_;  // processes so far
  std::vector<std::optional<Error>> ps_errors_;
  bool ps_killed_ = false;  // and not started again
  bool ps_lost_ = false;    // and started again
  uint32_t ps_due_ = 0;     // ps that will be
  bool all_killed_ = false;
  bool stopped_ = false;
  bool ps_was_frozen_ = false;
  bool somebody_finished_ = false;
  std::set<Fault::Since> reached_;  // each once
  std::set<uint32_t> joined_;       // ranks
  uint32_t follower_updates_ = 0;   // begun by ps/1
  bool out_of_processes_ = false;
  Report report_;
  kj::Own<kj::PromiseFulfiller<void>> over_;
};

// The plan of `seed`, run.
Report runSeed(uint64_t seed);

}  // namespace dtf::sim
