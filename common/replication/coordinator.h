#pragma once

// Coordinators decide when a gradient is applied to a shard, and the next step of each worker.

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "common/arena/gradient_layout.h"
#include "common/arena/model_declaration.h"
#include "common/base/clock.h"
#include "common/base/ids.h"
#include "common/optimizer/parameter_store.h"
#include "common/replication/answer.h"
#include "common/replication/cut.h"
#include "common/replication/epoch.h"
#include "common/replication/phase_times.h"
#include "common/replication/push_memory.h"
#include "common/replication/replicator.h"
#include "common/replication/updater.h"
#include "common/replication/waiting_calls.h"

namespace dtf::replication {

// One pushed gradient, identified by (rank, incarnation, step, batch).
struct Contribution {
  uint32_t rank = 0;
  Incarnation incarnation;
  uint64_t step = 0;
  uint32_t batch = 0;
  uint64_t epoch = kFirstEpoch;  // of the parameters that the gradient was computed from
  uint64_t progress = 0;         // bounded: the worker's clock, as last assigned by ps/0
  uint64_t sequence = 0;         // the sender's count of pushes, for logs
  float loss = 0;                // of the batch; returned in StepState::loss
  std::span<const float> gradient;
  std::shared_ptr<const void>
      owner;  // keeps `gradient` alive; released when it has been applied or dropped
  std::vector<uint32_t> row_counts{};  // see Gradient
  PhaseTimes times{};                  // of the worker's step before; without own time: not known

  bool is_lent = false;  // see Gradient

  // Returns the gradient; moves `owner` and `row_counts` out.
  arena::Gradient takeGradient() {
    return {gradient, std::move(owner), std::move(row_counts), 1, is_lent};
  }
};

// Async: how many updates by other workers lay between a worker's pull and its push.
struct StalenessHistogram {
  static constexpr size_t kBuckets = 65;
  std::array<uint64_t, kBuckets> counts{};  // [k]: staleness k; the last: 64 and more
  uint64_t sum = 0;
  uint64_t max = 0;
  void add(uint64_t staleness);
};

struct CoordinatorStatus {
  uint64_t global_step = 0;
  bool done = false;
  uint64_t gradients_applied = 0;
  uint64_t gradients_stale = 0;     // answered kStale: no effect
  uint64_t gradients_repeated = 0;  // seen before: not applied again
  uint32_t callers_waiting = 0;
  StalenessHistogram staleness;
};

// A step in the history of a job: the next epoch repeats steps of the one that was left.
struct StepName {
  uint64_t epoch = 0;
  uint64_t step = 0;
  auto operator<=>(const StepName&) const = default;
};

// Messages between the ps of a job in which ps/0 decides the set of each step (sync with backup
// workers). Messages from one ps to another keep their order and are not lost while both live.
class SyncPeers {
 public:
  virtual ~SyncPeers() = default;
  // Reports to ps/0 that this ps holds the gradient of `rank` for `step`. Arrives at
  // ShardPeers::onReceived.
  virtual void reportReceived(StepName step, uint32_t rank) = 0;
  // Announces from ps/0 to all others that `step` is made of `ranks`, ascending. Arrives at
  // ShardPeers::onDecision.
  virtual void announceDecision(StepName step, const std::vector<uint32_t>& ranks) = 0;
};

// A coordinator's settings and collaborators; all of them outlive it.
struct CoordinatorContext {
  uint32_t ps_task = 0;
  uint32_t ps_tasks = 1;
  ShardHosts hosts{};  // the tasks that host the shards, for messages
  uint32_t workers = 1;
  // Longest wait of one push or pull. With several ps it includes the time for another ps to
  // return: the workers awaited here may be waiting for that ps.
  Duration step_timeout{};
  Duration rejoin_timeout{};  // longest wait for the return of a lost worker; 0: none
  arena::ModelDeclaration declaration;
  const uint64_t& epoch;  // of the store's values
  optimizer::ParameterStore& store;
  optimizer::UpdateRunner& runner;
  OutwardCalls& calls;
  const Clock& clock;
  SyncPeers* peers = nullptr;        // needed for sync with backup workers on more than one ps
  Replicator* replicator = nullptr;  // null: no replica is kept

  // Returns the task that hosts this shard.
  TaskId host() const { return hosts.of(ps_task); }
};

// Decides for one shard. Shard calls it only after the store is initialised, for callers that are
// members.
// Owns: gradients and callbacks that wait.
// Threads: loop-thread only.
// Blocks: never.
// Errors: a refused push is answered with an Error through its callback. Only onDecision() and
// onReceived() throw, for a peer that breaks the protocol.
class Coordinator {
 public:
  virtual ~Coordinator() = default;

  // Answers with parameters and the next step of `rank`. Sync: `wanted.step` asks for the
  // parameters of that very step, which may be the one before the current; a ps that no longer has
  // them answers with the current ones.
  virtual void pull(uint32_t rank, const Wanted& wanted, PushCallback callback) = 0;

  virtual void push(Contribution contribution, PushCallback callback) = 0;

  // Notes a new process of `rank`; its predecessor's waiting calls are answered with an Error.
  virtual void joined(uint32_t rank, Incarnation incarnation) = 0;
  virtual void finished(uint32_t rank) = 0;
  // `why` reads "worker/1 was lost (no heartbeat for 10 s)".
  virtual void lost(uint32_t rank, const std::string& why) = 0;

  // Returns the event that a call has awaited for longer than kSaidAfter: "worker/1 in step 12".
  // Empty: no call has waited that long.
  virtual std::string awaitedText() const = 0;

  // Whether calls wait for the return of a lost worker. Their deadlines start when it has returned,
  // or has not returned in time.
  virtual bool awaitsReturn() const { return false; }

  // Restarts the time of every call that waits, when the awaited event could not come meanwhile.
  virtual void extendDeadlines() = 0;

  // Answers every call that waits with `error`.
  virtual void failAll(const Error& error) = 0;

  // A worker's waiting call, for the coordinator that follows when the shard goes back to an
  // earlier cut. takeWaiting() answers a waiting cut with kUnavailable.
  struct Stranded {
    uint32_t rank = 0;
    PushCallback callback;
  };
  virtual std::vector<Stranded> takeWaiting() = 0;

  // Answers calls that have waited too long with kDeadline and the reason of the wait.
  virtual void tick() = 0;

  virtual void onReceived(uint32_t ps_task, uint64_t step, uint32_t rank) = 0;
  virtual void onDecision(uint64_t step, const std::vector<uint32_t>& ranks) = 0;
  // Reports again: ps/0 may have lost the reports of this shard.
  virtual void onLeaderLinked() {}
  // On ps/0: forgets the reports of `ps_task`, which may have lost gradients; it reports again.
  virtual void onFollowerLinked(uint32_t) {}

  // ---- checkpoints (common/replication/cut.h)

  // Returns the earliest cut that this shard can still take. With `hold`, pushes beyond it wait for
  // at most kHoldMax, until a cut is agreed on. Only async training holds pushes: in sync training
  // every step is a cut.
  virtual CutPosition position(bool hold) = 0;
  // Captures the shard at `target`, neither before nor after; ends a hold.
  virtual void cutAt(CutPosition target, CutCallback callback) = 0;
  // Ends a hold without a cut, and answers a waiting cut with an error. No effect when nothing is
  // held.
  virtual void releaseHold() = 0;
  // The cut under way and the last capture, which is null when there is none.
  virtual const CutTaker& cuts() const = 0;
  virtual CutTaker& cuts() = 0;

  // Continues from a cut; the store has been restored. Called before the first call of a worker.
  virtual void restore(const CutPosition& position) = 0;

  // Returns the memory of the pushes in the store's values. Called before the first push.
  virtual PushMemory memory() const = 0;
  // Replaces restore() when the store was filled from a replica, which came with `memory`.
  virtual void resume(const PushMemory& memory) = 0;

  // On ps/0: no step beyond those under way; none beyond the store's while no worker has been sent
  // to one. Workers are told that they are done.
  virtual void requestStop() = 0;

  // Calls `then` between two updates; never if this is gone by then.
  virtual void callAfter(UpdateEnd end, std::function<void()> then) = 0;

  virtual CoordinatorStatus status() const = 0;
};

// Moves the calls that wait to `stranded`, in the order in which they came.
template <class Detail>
void strand(WaitingCalls<PushAnswer, Detail>& waiting,
            std::vector<Coordinator::Stranded>& stranded) {
  for (auto& call : waiting.takeAll()) stranded.push_back({call.rank, std::move(call.callback)});
}

// How long pushes may be held for a checkpoint.
inline constexpr Duration kHoldMax = std::chrono::seconds(5);

// Returns the error of a worker's call that gave way to its newer one. `host`: of the shard.
Error gaveWay(uint32_t rank, TaskId host);

// Returns the error of a checkpoint that waited for its cut while the shard went back.
Error wentBackDuringCut(TaskId host);

// Returns the coordinator for context.declaration.replication.
std::unique_ptr<Coordinator> makeCoordinator(const CoordinatorContext& context);

}  // namespace dtf::replication
