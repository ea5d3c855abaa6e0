#pragma once

// Everything that one seed decides beforehand: the cluster, its network, the lives of the job, the
// faults in each and when.

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/random.h"
#include "common/cluster/spec.h"
#include "common/ps/parameter_client.h"
#include "tests/sim/network.h"

namespace dtf::sim {

struct Fault {
  enum class Kind : uint8_t {
    kKillWorker,
    kKillPs,
    kFreezeWorker,  // SIGSTOP for `length`; with `successor` a new process starts meanwhile
    kFreezePs,
    kCut,         // a connection is reset
    kSilence,     // nothing passes on a connection for `length`
    kCutReplica,  // the same, of the one on which ps `target` has its replica kept
    kSilenceReplica,
    kCutWorker,  // all connections of that task
    kCutPs,
    kStop,  // the job is asked to end: by a worker, or with `successor` by every ps
    kKillAll,
  };
  // Moments of a job that a time can hardly hit.
  enum class Since : uint8_t {
    kStart,
    kFirstTrained,     // the first worker has done its steps
    kGoingBack,        // the chief is about to have all ps go back, for the first time
    kPsIsBack,         // the first ps that was lost has been started again
    kAllJoined,        // all workers are there: the chief is about to bring the values
    kStopped,          // the job was asked to end
    kFollowerUpdates,  // ps/1 begins an update, kUpdateOfMoment of this life
    // The end of a job, in this order.
    kLastSave,        // the chief begins to save the end
    kLastSaved,       // and has
    kFirstMet,        // a worker has met the others behind that
    kLastEvaluation,  // the chief begins its last evaluation
    kResult,          // the chief reports the result
    kFirstLeaves,     // a worker tells the ps that it has finished; worker/1, or it is gone
    kFirstLeft,       // a worker has ended with 0
    kChiefLeaves,     // the chief tells the ps that it has finished
    kChiefLeft,       // the chief has ended with 0
  };
  static constexpr uint32_t kUpdateOfMoment = 3;
  Kind kind = Kind::kCut;
  Since since = Since::kStart;
  Duration at{};  // after that
  uint32_t target = 0;
  Duration length{};
  bool successor = false;
  bool isOfReplica() const { return kind == Kind::kCutReplica || kind == Kind::kSilenceReplica; }
  std::string text() const;
};

const char* momentText(Fault::Since since);

// From the start of all processes to the end of the last. The next life has the same disk.
struct Life {
  std::vector<Fault> faults;
  bool power_cut = false;  // at its end
  bool has(Fault::Kind kind) const;
};

// Seeds from here on are jobs that are hurt at their end, each combination once (end_plans.cc);
// behind them come the same combinations at other moments.
inline constexpr uint64_t kFirstEndPlan = 1'000'000'000;
inline constexpr uint64_t kEndPlans = 10 * 3 * 11 * 4 * 2 * 2;

struct Plan {
  uint64_t seed = 0;
  uint32_t ps_tasks = 1;
  uint32_t workers = 1;
  uint32_t aggregate = 0;  // sync: gradients a step; 0: async
  uint64_t steps = 10;
  bool slow_updates = false;    // arenas too large to be updated in place, on a slow runner
  double echo_share = 0;        // of the exchanges: said a second time, after the answer
  double early_echo_share = 0;  // of the exchanges: said a second time beside the first
  Duration compute_max{};       // of one batch
  Duration evaluation{};        // the chief's last one
  double straggler_share = 0;   // of the batches: these take 20 times as long
  cluster::Timeouts timeouts;
  bool early_timeouts = false;
  cluster::OptimizerSpec optimizer;
  bool checkpoints = false;
  bool gather = false;                 // their files are on the chief's disk alone
  bool stay = false;                   // the shards stay with the ps that wrote them
  cluster::CheckpointSpec checkpoint;  // when
  uint64_t snapshot_every_steps = 0;   // in the memory of the hosts; 0: none
  bool ps_return = false;              // who kills a ps starts it again
  // By dtf-launch, which starts again what it thinks fit; else by hand, under a service manager.
  bool launched = false;
  uint32_t restarts_max = kRestartsMax;  // dtf-launch's budget for one task
  double refill_seconds = 600;
  bool replicas = false;       // durability: replica
  bool shares_memory = false;  // workers and ps read each other's: all are on one host
  bool bounds = false;         // if async: bounded,
  uint32_t staleness = 0;      // by so many steps
  bool overlap = false;        // if async: workers compute while their last gradient travels
  bool streams = false;     // if neither that nor sparse: gradients leave while they are computed
  bool names_rows = false;  // if sparse: workers ask for rows, of which they name all
  bool narrows = false;     // what travels is bfloat16
  bool sparse = false;      // variables are tables of single elements, gradients are rows
  double disk_error_share = 0;  // of the operations on the disk that change something
  NetworkOptions network;
  std::vector<Life> lives;  // at least one

  bool isOfTheEnd() const { return seed >= kFirstEndPlan; }
  bool sync() const { return aggregate > 0; }
  bool bounded() const { return bounds && !sync(); }
  bool overlaps() const { return overlap && !sync(); }
  bool streamsGradients() const { return streams && !overlaps() && !sparse && batchesMax() == 1; }
  bool namesRows() const { return names_rows && sparse && !overlaps() && batchesMax() == 1; }
  static constexpr uint32_t kRestartsMax = 7;
  bool hasBackups() const { return sync() && aggregate < workers; }
  // A rank has at most so many processes up to the end of life `life`, counted from 0.
  static uint32_t processesMax(size_t life) { return 8 + 4 * static_cast<uint32_t>(life); }
  uint32_t batchesMax() const;
  ps::ModelDeclaration model(uint64_t elements) const;

  // Nothing at all goes wrong in that life: no process may fail.
  bool undisturbed(const Life& life) const;
  // What goes wrong can be mended by starting workers again: the job must get to its end.
  bool mustFinish(const Life& life) const;
  // Workers are killed, and nothing else happens to anyone: no other process may fail of it.
  bool onlyWorkersAreKilled(const Life& life) const;
  // The chief looks after the values: it saves them, and takes all back when a ps is lost.
  bool supervised() const { return checkpoints || snapshot_every_steps > 0 || replicas; }
  // A ps that is killed comes back, and there is a replica, or a cut to go back to.
  bool psComeBack() const { return ps_return && supervised(); }
  // One ps is killed, which comes back, and nothing else happens but to links of replicas: its
  // replica brings all back.
  bool losesNothing(const Life& life) const;
  // Ps are killed, which come back, and nothing else happens but to links of replicas: a worker
  // that trains keeps its process.
  bool onlyPsAreKilled(const Life& life) const;
  // Of a job that is hurt at its end: dtf-launch brings it to its end all the same.
  bool mustEndWell(const Life& life) const;
  // Nothing happens.
  bool isCalm(const Life& life) const;
  bool isLast(size_t life) const { return life + 1 == lives.size(); }
  std::string text() const;
};

inline constexpr size_t kLivesMax = 3;

cluster::Timeouts planTimeouts();

// What is drawn from a seed, each from a stream of its own: the rest of a seed stays when one of
// them changes. Their numbers stay as well, for tests name seeds.
enum class Stream : uint64_t {
  kCluster = 1,  // and its network, and its faults
  kWorld = 2,    // whatever happens by chance while it runs
  kManyLosses = 3,
  kCheckpoints = 4,
  kDiskErrors = 5,
  kLives = 6,  // and the optimizer
  kLostPs = 7,
  kDurability = 8,
  kLossesInBetween = 9,
  kLostReplicas = 10,
  kLaunch = 11,
  kLossAfterStop = 12,
  kSparse = 13,
  kReplicaLinks = 14,
  kGather = 15,
  kOverlap = 16,
  kSharedMemory = 17,
  kStreamed = 18,
  kNarrow = 19,
  kNamedRows = 20,
  kBounded = 21,
};
inline Random streamOf(uint64_t seed, Stream stream) {
  return Random(seed, static_cast<uint64_t>(stream));
}

Plan makeEndPlan(uint64_t number);

Plan makePlan(uint64_t seed);

}  // namespace dtf::sim
