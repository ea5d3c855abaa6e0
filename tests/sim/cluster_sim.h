#pragma once

// A whole job in one thread: ps and worker processes, their network, the starter of their new
// processes (dtf-launch, or a service manager for a job started by hand), and the faults of a plan.
// Each further life runs the same job on the disk of the one before. Every event is a pure function
// of the plan.

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
  uint64_t stopped = 0;   // lives that ended after a request to stop
  uint64_t launched = 0;  // lives under dtf-launch, and lives it ended for a failure
  uint64_t given_up = 0;
  uint64_t missed = 0;             // backup workers, for good
  uint64_t given_up_steps = 0;     // async: of the parts of lost workers, done by others
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
  void startShard(uint32_t index, uint32_t attempt);
  void startWorker(uint32_t rank, uint32_t number);
  void startWorkerLater(uint32_t rank);
  bool mayStartWorker(uint32_t rank);
  // cluster_hosts.cc: a job without ps.
  SimPs* hostedBy(uint32_t rank);  // null: none
  bool isThere(uint32_t rank);     // a process of it
  void startWorkerAfter(Duration delay, uint32_t rank);
  void onHostTrained(uint32_t rank, const std::optional<Error>& error);
  void onHostedShardEnded(uint32_t rank);
  void endHost(uint32_t rank, const std::optional<Error>& error);
  void killHosted(uint32_t rank);
  // cluster_launch.cc: a job under dtf-launch.
  void beginLaunch();
  void tickLauncher();
  void startAgain(TaskId id);
  void signalTask(TaskId id, int number);
  void signalWorker(SimWorker& worker);
  bool mayFail() const { return out_of_processes_ || (launcher_ && launcher_->mayFail()); }
  void onUpdate(uint32_t index);
  void onStep();
  void onPsEnded(SimPs& ps);
  void judgeEnd(SimPs& ps);
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
  void endWorker(uint32_t rank, launcher::ExitStatus status);
  void killPs(uint32_t index);
  void dropKilled(uint32_t index);
  void noteLost();
  void killAll();
  void stop(const Fault& fault);
  void freezeWorker(const Fault& fault);
  void freezePs(SimPs& ps, Duration length);
  void endIfOver();
  void runLife();
  void judge();
  void judgeDisk();
  void judgeCheckpoint(uint64_t step);
  std::vector<SavedArena> readArenas(const std::filesystem::path& folder,
                                     const checkpoint::Manifest& manifest);
  std::vector<SavedArena> readSnapshots(const checkpoint::CutName& name);

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
  // Over all lives. A judged step was whole at the end of a life, with the contents it must have.
  std::set<uint64_t> saved_;  // steps with a committed checkpoint
  std::set<uint64_t> judged_;
  // The newest checkpoint, which the next life must go on from.
  std::optional<uint64_t> newest_;
  uint64_t newest_epoch_ = 0;
  std::vector<SavedArena> newest_arenas_;
  // State of this life.
  size_t life_ = 0;
  TimePoint began_;
  std::unique_ptr<SimLauncher> launcher_;  // null: started by hand
  std::vector<std::unique_ptr<SimPs>> ps_;
  std::vector<Rank> ranks_;
  std::vector<uint32_t> ps_started_;  // processes so far
  std::vector<std::optional<Error>> ps_errors_;
  bool ps_killed_ = false;  // and not started again
  bool ps_lost_ = false;    // and started again
  uint32_t ps_due_ = 0;     // hosts of shards that will be
  bool all_killed_ = false;
  bool stopped_ = false;
  bool ps_was_frozen_ = false;
  bool somebody_finished_ = false;
  std::set<Fault::Since> reached_;   // each once
  std::set<uint32_t> joined_;        // ranks
  uint32_t follower_updates_ = 0;    // begun by ps/1
  std::optional<uint64_t> lost_at_;  // the furthest step when a shard was lost first
  bool out_of_processes_ = false;
  Report report_;
  kj::Own<kj::PromiseFulfiller<void>> over_;
};

// The plan of `seed`, run.
Report runSeed(uint64_t seed);

}  // namespace dtf::sim
