#pragma once

// Asynchronous training: each gradient is applied as it arrives, whole, one after another.
//
// ps/0 counts the global step, and grants steps: a worker computes only what ps/0 has granted it,
// so that exactly `steps` gradients are pushed in total. A worker whose process is lost gives its
// grant back. Once all steps are granted, a worker that asks for more waits until the last of them
// is applied (then it is told it is done) or a grant comes back (then it computes that one): a job
// of N steps ends at global step N. The other ps count nothing and apply the same pushes.
//
// Where every example counts once an epoch, each worker has a part of the steps (step_parts.h). One
// that has done its part waits until the others have done theirs, but not for one that is lost and
// doesn't return in time: then the workers that are there take more, so that the job ends all the
// same. While an awaited worker pushes, the calls of those that wait for it have no deadline; once
// none has pushed for a step's timeout, they have.
//
// Bounded training (stale synchronous parallel: Ho et al., "More Effective Distributed ML via a
// Stale Synchronous Parallel Parameter Server", NIPS 2013) is this, but no worker begins a step
// while it is more than `staleness` steps ahead of the slowest: every ps keeps its answer to itself
// until then, so the parameters that come have all that the others have pushed up to `staleness`
// steps before; with overlap a step begins before the answer, and they may lack one more. How far
// each worker is, its progress, ps/0 says; the workers bring it to the other ps (step_agreement.h).
// It is not the worker's own count of steps: a process begins where the slowest is. Others than
// ps/0 hear of a new process after ps/0, so what they answer meanwhile may lack its first push.
//
//   a worker                  counts         at
//   a new process of it       no more
//   its first pull, on ps/0   from here on   the slowest that counts; none does: the furthest known
//   its word, on another ps   from here on   what it says that ps/0 has said
//   its push is applied       from here on   one more; on another ps than ps/0: than it says. Where
//                                            it didn't count, on ps/0: the slowest that counts
//   lost, or finished         no more
//   its part is done          no more, as long as it waits for those of others
//   ps/0 was refilled         once it is here  what is remembered, if that is near the furthest

#include <deque>

#include "common/ps/coordinator.h"
#include "common/ps/step_parts.h"
#include "common/ps/updater.h"

namespace dtf::ps {

// See Coordinator.
class AsyncCoordinator final : public Coordinator {
 public:
  explicit AsyncCoordinator(const CoordinatorContext& context);

  void pull(uint32_t rank, const Wanted& wanted, PushCallback callback) override;
  void push(Contribution contribution, PushCallback callback) override;
  void joined(uint32_t rank, Incarnation incarnation) override;
  void finished(uint32_t rank) override;
  void lost(uint32_t rank, const std::string& why) override;
  std::string awaitedText() const override;
  void extendDeadlines() override;
  void failAll(const Error& error) override;
  std::vector<Stranded> takeWaiting() override;
  void tick() override;
  bool awaitsReturn() const override;
  void onReceived(uint32_t ps_task, uint64_t step, uint32_t rank) override;
  void onDecision(uint64_t step, const std::vector<uint32_t>& ranks) override;
  CutPosition position(bool hold) override;
  void cutAt(CutPosition target, CutCallback callback) override;
  void releaseHold() override;
  const CutTaker& cuts() const override { return cut_; }
  CutTaker& cuts() override { return cut_; }
  void restore(const CutPosition& position) override;
  PushMemory memory() const override;
  void resume(const PushMemory& memory) override;
  void requestStop(bool at_rest) override;
  void whenIdle(std::function<void()> then) override { updater_.whenIdle(std::move(then)); }
  CoordinatorStatus status() const override;

 private:
  struct PushName {
    Incarnation incarnation;
    uint64_t step = 0;
    bool operator==(const PushName&) const = default;
  };
  struct Worker {
    uint64_t steps_pushed = 0;    // its own count: accepted pushes, over all its processes
    bool granted = false;         // ps/0: holds a grant it has not used
    bool gone = false;            // lost, or finished: nothing more comes
    Incarnation process;          // that has joined last
    uint64_t progress = 0;        // bounded: how far it is
    bool counts = false;          // bounded: the others may not run far ahead of it
    bool may_hold_grant = false;  // of an earlier process of ps/0: see resume()
    uint64_t version_seen = 0;    // of the parameters it was given last
    uint64_t version_before =
        0;  // of those before, which its gradients are of where a job overlaps
    std::optional<PushName> last_push;
    bool last_applied = false;             // last_push is in the parameters
    uint64_t last_staleness = 0;           // of last_push, once applied
    float last_loss = 0;                   // that came with last_push
    std::optional<StepState> last_answer;  // to last_push, once given
    // The one call that waits: the push named last_push, or a pull.
    PushCallback waiting;
    TimePoint deadline;
    bool waiting_is_push = false;
    bool awaits_grant = false;  // `waiting` is due once there is something to do for this worker
  };

  bool leads() const { return context_.ps_task == 0; }
  uint64_t stepsLeftFor(const Worker& worker) const;
  uint64_t grantsOfBefore() const;
  void noteGrantShown(const Contribution& contribution);
  bool isDone() const;
  bool refused(const Contribution& contribution, PushCallback& callback);
  bool answeredAsRepeated(const Contribution& contribution, PushCallback& callback);
  bool isBeyondCut(const Contribution& contribution) const;
  void park(Contribution contribution, PushCallback callback);
  void unpark(uint32_t rank, const Error& error);
  CutPosition taken() const;
  void takeCutIfReached();
  uint64_t firstProgress() const;
  void beginProgress(uint32_t rank, uint64_t told);
  void advanceProgress(uint32_t rank, uint64_t told);
  uint64_t progressAfter(uint32_t rank, uint64_t told) const;
  void recallProgress(uint32_t rank);
  bool mustWait(const Worker& worker) const;
  void countNoMore(uint32_t rank);
  void findSlowest();
  void settleHeld();
  void wait(uint32_t rank, bool is_push, PushCallback callback);
  void cancelWaiting(uint32_t rank, const Error& error);
  std::string waitingForText(uint32_t rank) const;
  void askForGrant(uint32_t rank);
  void applyNext();
  void onApplied(uint32_t rank, const PushName& name, uint64_t progress);
  void returnGrant(uint32_t rank);
  void settle(uint32_t rank);
  void settleAll();
  void answer(PushCallback callback, PushAnswer what);
  StepState stateOf(const Worker& worker, Outcome outcome, uint64_t staleness) const;

  // A push that waits for a cut to be taken first; one for each rank.
  struct Parked {
    Contribution contribution;
    PushCallback callback;
  };

  const CoordinatorContext context_;
  const std::optional<uint64_t> staleness_;  // bounded
  uint64_t slowest_ = kProgressEnd;          // bounded: the least progress of those that count
  uint64_t last_step_;  // the declared number of steps, or where the job was asked to stop
  Updater updater_;
  CutTaker cut_;
  bool holding_ = false;
  TimePoint hold_until_;
  std::vector<Parked> parked_;
  std::vector<Worker> workers_;
  StepParts parts_;
  std::deque<Contribution> queue_;    // at most kQueuedPerWorkerMax per worker
  std::deque<uint32_t> grant_queue_;  // ranks that await a grant, in order of asking
  uint64_t accepted_ = 0;             // pushes taken, applied or queued
  uint64_t granted_ = 0;              // grants held and not used
  bool resumed_ = false;              // ps/0, from its replica
  TimePoint grants_of_before_until_;  // longer none is kept for who may hold it
  CoordinatorStatus counters_;
};

}  // namespace dtf::ps
