#pragma once

// Decides when which gradients are applied to a shard, and what each worker does next.

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/base/ids.h"
#include "common/ps/answer.h"
#include "common/ps/cut.h"
#include "common/ps/epoch.h"
#include "common/ps/parameter_store.h"
#include "common/ps/push_memory.h"
#include "common/ps/replicator.h"

namespace dtf::ps {

// One pushed gradient. (rank, incarnation, step, batch) names it: seen again, it is the same push.
struct Contribution {
  uint32_t rank = 0;
  Incarnation incarnation;
  uint64_t step = 0;
  uint32_t batch = 0;
  uint64_t epoch = kFirstEpoch;  // of the parameters that the gradient was computed from
  uint64_t progress = 0;         // bounded: of the worker, as ps/0 has said it last
  uint64_t sequence = 0;         // the sender's count of pushes, for logs
  float loss = 0;                // of the batch; comes back in StepState::loss
  std::span<const float> gradient;
  std::shared_ptr<const void>
      owner;  // keeps `gradient` alive; released when it has been applied or dropped
  std::vector<uint32_t> row_counts{};  // see Gradient

  // Its gradient: `owner` and `row_counts` are moved out.
  Gradient takeGradient() { return {gradient, std::move(owner), std::move(row_counts)}; }
};

// Async: how many updates by others lay between a worker's pull and its push.
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

// A step in the history of a job: the steps of an epoch that was left come again in the next.
struct StepName {
  uint64_t epoch = 0;
  uint64_t step = 0;
  auto operator<=>(const StepName&) const = default;
};

// What happens between the ps of a job when the set of a step must be decided in one place (sync
// with backup workers). Messages from one ps to another keep their order and are not lost while
// both live.
class SyncPeers {
 public:
  virtual ~SyncPeers() = default;
  // To ps/0 (from the others): this ps holds the gradient of `rank` for `step`. Arrives at
  // Shard::onReceived.
  virtual void reportReceived(StepName step, uint32_t rank) = 0;
  // From ps/0 to all others: `step` is made of these ranks, ascending. Arrives at
  // Shard::onDecision.
  virtual void announceDecision(StepName step, const std::vector<uint32_t>& ranks) = 0;
};

// What a coordinator works with; all of it outlives the coordinator.
struct CoordinatorContext {
  uint32_t ps_task = 0;
  uint32_t ps_tasks = 1;
  uint32_t workers = 1;
  // Longest wait of one push or pull. Of several ps another may be away meanwhile, with the workers
  // whose gradients this one waits for: its time to return is in it.
  Duration step_timeout{};
  Duration rejoin_timeout{};  // longest wait for the return of a lost worker; 0: none
  ModelDeclaration declaration;
  const uint64_t& epoch;  // of the store's values
  ParameterStore& store;
  UpdateRunner& runner;
  OutwardCalls& calls;
  const Clock& clock;
  SyncPeers* peers = nullptr;        // needed for sync with backup workers on more than one ps
  Replicator* replicator = nullptr;  // null: no replica is kept
};

// Calls come only after the store is initialised and the caller's membership has been checked
// (Shard does both).
// Owns: gradients and callbacks that wait.
// Threads: loop-thread only.
// Blocks: never.
// Errors: a refused push answers with an Error through its callback; nothing is thrown but by
// onDecision/onReceived, for a peer that breaks the protocol.
class Coordinator {
 public:
  virtual ~Coordinator() = default;

  // Parameters and what `rank` does next. Sync: `wanted.step` asks for the parameters of that very
  // step, which may be the one before the current; a ps that no longer has them answers with the
  // current ones.
  virtual void pull(uint32_t rank, const Wanted& wanted, PushCallback callback) = 0;

  virtual void push(Contribution contribution, PushCallback callback) = 0;

  // A process of `rank` has joined that was not here before. Waiting calls of its predecessor are
  // answered with the error.
  virtual void joined(uint32_t rank, Incarnation incarnation) = 0;
  virtual void finished(uint32_t rank) = 0;
  // `why` reads "worker/1 was lost (no heartbeat for 10 s)".
  virtual void lost(uint32_t rank, const std::string& why) = 0;

  // Whom or what a call waits for that has waited longer than kSaidAfter: "worker/1 in step 12".
  // Empty: nobody has waited that long.
  virtual std::string awaitedText() const = 0;

  // Whether calls wait for the return of a lost worker: their deadlines begin when it is there, or
  // has not returned in time.
  virtual bool awaitsReturn() const { return false; }

  // The time of every call that waits begins anew: what it waits for could not come meanwhile.
  virtual void extendDeadlines() = 0;

  // Answers every call that waits with `error`.
  virtual void failAll(const Error& error) = 0;

  // Before the shard goes back to an earlier cut, with a coordinator of its own: the workers' calls
  // that wait, for the next one to answer. What else waits is answered with kUnavailable.
  struct Stranded {
    uint32_t rank = 0;
    PushCallback callback;
  };
  virtual std::vector<Stranded> takeWaiting() = 0;

  // Answers calls that have waited too long with kDeadline, naming what they wait for.
  virtual void tick() = 0;

  virtual void onReceived(uint32_t ps_task, uint64_t step, uint32_t rank) = 0;
  virtual void onDecision(uint64_t step, const std::vector<uint32_t>& ranks) = 0;
  // ps/0 may know nothing of what this shard has reported.
  virtual void onLeaderLinked() {}
  // On ps/0: `ps_task` may hold nothing of what it has reported, and reports again what it holds.
  virtual void onFollowerLinked(uint32_t) {}

  // ---- checkpoints (common/ps/cut.h)

  // How far this shard is: no cut before it can be taken any more. With `hold`, pushes beyond it
  // wait, for at most kHoldMax, so that a cut can be agreed upon; async training needs that, sync
  // training goes on, for its steps are cuts already.
  virtual CutPosition position(bool hold) = 0;
  // Captures the shard when it gets to `target`, neither before nor after; ends a hold.
  virtual void cutAt(CutPosition target, CutCallback callback) = 0;
  // Ends a hold without a cut; a cut that waits for it is answered with an error. No effect when
  // there is none.
  virtual void releaseHold() = 0;
  // The last cut that was captured; null when there is none.
  virtual const CutTaker& cuts() const = 0;
  virtual CutTaker& cuts() = 0;

  // Before the first call of a worker: training goes on from a cut. The store has been restored.
  virtual void restore(const CutPosition& position) = 0;

  // What is remembered of the pushes in the store's values. Before the first push.
  virtual PushMemory memory() const = 0;
  // In place of restore(): the store was filled from a replica, with which this came.
  virtual void resume(const PushMemory& memory) = 0;

  // On ps/0: no step beyond those under way; with `at_rest`, for nobody has been sent to one yet,
  // none beyond the store's. Workers are told that they are done.
  virtual void requestStop(bool at_rest) = 0;

  // Calls `then` between two updates: at once when none is running.
  virtual void whenIdle(std::function<void()> then) = 0;

  virtual CoordinatorStatus status() const = 0;
};

// Workers take turns of milliseconds: who waits longer than this wants to know for whom.
inline constexpr Duration kSaidAfter = std::chrono::seconds(1);

// ---- what coordinators share: of each of their workers a call waits in `waiting` until `deadline`

template <class Worker>
std::vector<Coordinator::Stranded> takeCalls(std::vector<Worker>& workers) {
  std::vector<Coordinator::Stranded> taken;
  for (uint32_t rank = 0; rank < workers.size(); ++rank)
    if (auto callback = std::exchange(workers[rank].waiting, nullptr))
      taken.push_back({rank, std::move(callback)});
  return taken;
}

template <class Worker>
void extendCalls(std::vector<Worker>& workers, TimePoint deadline) {
  for (Worker& worker : workers)
    if (worker.waiting) worker.deadline = deadline;
}

template <class Worker>
uint32_t countCalls(const std::vector<Worker>& workers) {
  return static_cast<uint32_t>(std::count_if(workers.begin(), workers.end(),
                                             [](const Worker& w) { return w.waiting != nullptr; }));
}

// How long pushes may be held back for the sake of a checkpoint.
inline constexpr Duration kHoldMax = std::chrono::seconds(5);

// Whether a call that is given up at `deadline`, `timeout` after it came, has waited longer than
// kSaidAfter.
inline bool hasWaited(TimePoint deadline, TimePoint now, Duration timeout) {
  return deadline != TimePoint::max() && now - (deadline - timeout) > kSaidAfter;
}

// What a checkpoint reads that waited for its cut while the shard went back.
Error wentBackDuringCut(uint32_t ps_task);

// The coordinator for context.declaration.replication.
std::unique_ptr<Coordinator> makeCoordinator(const CoordinatorContext& context);

}  // namespace dtf::ps
