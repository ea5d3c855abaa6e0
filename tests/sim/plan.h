#pragma once

// Everything that one seed decides beforehand: the cluster, its network, the lives of the job, the
// faults in each and when.

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/arena/model_declaration.h"
#include "common/base/clock.h"
#include "common/base/ids.h"
#include "common/base/random.h"
#include "common/cluster/spec.h"
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
    kCutReplica,  // the same, of the connection to the replica of ps `target`
    kSilenceReplica,
    kCutWorker,  // all connections of that task
    kCutPs,
    kStop,  // a worker, or with `successor` every ps, gets a request to stop
    kKillAll,
  };
  // Moments of a job that a drawn time hardly ever hits.
  enum class Since : uint8_t {
    kStart,
    kFirstTrained,     // the first worker has done its steps
    kGoingBack,        // the chief is about to have all ps go back, for the first time
    kPsIsBack,         // the first ps that was lost has been started again
    kTrainsOn,         // sync: two steps have been made since the first loss of a shard
    kAllJoined,        // all workers are there: the chief is about to bring the values
    kStopped,          // the job has got a request to stop
    kFollowerUpdates,  // ps/1 begins an update, kUpdateOfMoment of this life
    kPartDone,         // async: a worker pushes the last step of its part of the epochs
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
inline constexpr uint64_t kEndPlans = 10 * 3 * 11 * 4 * 2 * 2 * 2;

struct Plan {
  uint64_t seed = 0;
  uint32_t ps_tasks = 1;
  uint32_t workers = 1;
  bool workers_host = false;  // a shard each, behind the shards of the ps; no worker is alone
  uint32_t aggregate = 0;     // sync: gradients a step; 0: async
  uint64_t steps = 10;
  // Each example counts once in each of so many epochs, which are `steps`; 0: whole batches.
  uint64_t epochs = 0;
  uint64_t examples = 0;
  uint64_t batch_size = 0;
  bool slow_updates = false;    // none in place, each on a slow runner
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
  bool ps_return = false;              // a killed ps is started again
  // Under dtf-launch, which restarts tasks by its own rules; else by hand, under a service manager.
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
  bool narrows = false;     // gradients and parameters travel as bfloat16
  // Variables are tables of single elements, gradients are rows; hybrid: on the ps alone.
  bool sparse = false;
  double disk_error_share = 0;  // of the operations on the disk that change something
  NetworkOptions network;
  std::vector<Life> lives;  // at least one

  bool isHybrid() const { return workers_host && ps_tasks > 0; }
  bool isSparse(uint32_t shard) const { return sparse && (!isHybrid() || shard < ps_tasks); }
  uint32_t shards() const { return ps_tasks + (workers_host ? workers : 0); }
  // The task that hosts a shard.
  TaskId host(uint32_t shard) const;
  // The shard that a worker hosts; nullopt: none.
  std::optional<uint32_t> shardOf(uint32_t rank) const;
  bool isOfTheEnd() const { return seed >= kFirstEndPlan; }
  bool sync() const { return aggregate > 0; }
  bool bounded() const { return bounds && !sync(); }
  // async: the part of a worker that is lost may be given up, and done by others.
  bool givesUpParts() const { return epochs > 0 && timeouts.rejoin_seconds < kPatientSeconds; }
  static constexpr double kPatientSeconds = 5;
  bool overlaps() const { return overlap && !sync(); }
  bool streamsGradients() const { return streams && !overlaps() && !sparse && batchesMax() == 1; }
  bool namesRows() const { return names_rows && sparse && !overlaps() && batchesMax() == 1; }
  static constexpr uint32_t kRestartsMax = 7;
  bool hasBackups() const { return sync() && aggregate < workers; }
  // A rank has at most so many processes up to the end of life `life`, counted from 0.
  static uint32_t processesMax(size_t life) { return 8 + 4 * static_cast<uint32_t>(life); }
  uint32_t batchesMax() const;
  arena::ModelDeclaration model(uint64_t elements) const;

  // Nothing at all goes wrong in that life: no process may fail.
  bool undisturbed(const Life& life) const;
  // Starting workers again mends all faults of `life`: the job must get to its end.
  bool mustFinish(const Life& life) const;
  // Workers are killed, and nothing else happens to anyone: no other process may fail of it.
  bool onlyWorkersAreKilled(const Life& life) const;
  // The chief supervises the values: it saves them, and takes all back when a ps is lost.
  bool supervised() const { return checkpoints || snapshot_every_steps > 0 || replicas; }
  // A ps that is killed comes back, and there is a replica, or a cut to go back to.
  bool psComeBack() const { return ps_return && supervised(); }
  // Whether `fault` may cost a shard its values.
  bool mayLoseShard(const Fault& fault) const;
  // Whether the host of the replica lives of each shard that `life` loses. The faults since
  // kTrainsOn are another loss.
  bool keepsReplicas(const Life& life) const;
  // Hosts of shards are killed and come back, but none of two that keep each other's replica, and
  // nothing else happens except to links of replicas: the replicas restore everything.
  bool losesNothing(const Life& life) const;
  // Only hosts of shards are killed, and they come back; nothing else happens except to links of
  // replicas: a worker that trains keeps its process.
  bool onlyPsAreKilled(const Life& life) const;
  // For a job that is hurt at its end: dtf-launch still brings it to its end.
  bool mustEndWell(const Life& life) const;
  // Nothing happens.
  bool isCalm(const Life& life) const;
  bool isLast(size_t life) const { return life + 1 == lives.size(); }
  std::string text() const;
};

inline constexpr size_t kLivesMax = 3;

cluster::Timeouts planTimeouts();

// The draws of a seed, each from a stream of its own: a change of one leaves the rest of a seed as
// it is. The numbers stay, too, because tests name seeds.
enum class Stream : uint64_t {
  kCluster = 1,  // and its network, and its faults
  kWorld = 2,    // random events of a run
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
  kEpochs = 22,
  kHosts = 23,
  kHybrid = 24,
};
inline Random streamOf(uint64_t seed, Stream stream) {
  return Random(seed, static_cast<uint64_t>(stream));
}

Plan makeEndPlan(uint64_t number);

// Makes a job of steps one of epochs, with about as many steps.
void drawEpochs(Random& random, Plan& plan);

// Makes the workers host shards, without ps or beside them.
void drawHosts(Random& random, Plan& plan);

Plan makePlan(uint64_t seed);
// Returns the job of steps, with ps, that the seed was before there were other jobs.
Plan makePlanOfSteps(uint64_t seed);

}  // namespace dtf::sim
