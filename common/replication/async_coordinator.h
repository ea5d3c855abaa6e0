#pragma once

// Asynchronous training: each gradient is applied as it arrives, whole, one after another.
//
// ps/0 counts the global step and grants steps. A worker computes only steps that ps/0 granted it,
// so exactly `steps` gradients are pushed in total. A lost worker gives its grant back. When all
// steps are granted, a worker that asks for another waits until the last of them is applied (it
// receives `done`) or a grant comes back (it computes that step). So a job of N steps ends at
// global step N. The other ps count nothing and apply the same pushes.
//
// In a job that reads every example once an epoch, each worker has a part of the steps
// (step_parts.h). A worker that has done its part waits until the others have done theirs. It
// doesn't wait for a lost worker that doesn't return in time: then the workers that are left take
// more steps, so that the job still ends. While an awaited worker pushes, the calls that wait for
// it have no deadline; once none has pushed for a step's timeout, they have.
//
// Bounded training is the same, with a bound on how far a worker may be ahead (staleness_bound.h).

#include <deque>

#include "common/replication/coordinator.h"
#include "common/replication/staleness_bound.h"
#include "common/replication/step_parts.h"
#include "common/replication/updater.h"
#include "common/replication/waiting_calls.h"

namespace dtf::replication {

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
  void requestStop() override;
  void callAfter(UpdateEnd end, std::function<void()> then) override {
    updater_.callAfter(end, std::move(then));
  }
  CoordinatorStatus status() const override;

 private:
  struct PushName {
    Incarnation incarnation;
    uint64_t step = 0;
    bool operator==(const PushName&) const = default;
  };
  struct Worker {
    uint64_t steps_pushed = 0;    // accepted pushes of all its processes
    bool granted = false;         // ps/0: holds a grant it has not used
    bool gone = false;            // lost or finished: nothing more comes
    Incarnation process;          // the last that joined
    bool may_hold_grant = false;  // from an earlier process of ps/0: see resume()
    uint64_t version_seen = 0;    // of the parameters sent to it last
    uint64_t version_before =
        0;  // of the parameters before these, which its gradients are of with overlap
    std::optional<PushName> last_push;
    bool last_applied = false;             // last_push is in the parameters
    uint64_t last_staleness = 0;           // of last_push, once applied
    float last_loss = 0;                   // of last_push
    std::optional<StepState> last_answer;  // to last_push, once given
    bool awaits_grant = false;             // its waiting call is answered when it may go on
  };
  // A worker's one call that waits: the push named last_push, or a pull.
  struct Wait {
    bool is_push = false;
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
  CutPosition taken() const;
  void takeCutIfReached();
  void recallClock(uint32_t rank);
  bool isTooFarAhead(uint32_t rank) const;
  void settleHeld();
  void wait(uint32_t rank, bool is_push, PushCallback callback);
  void askNoMore(uint32_t rank);
  void dropCalls(uint32_t rank, const Error& error);
  std::string waitingForText(uint32_t rank) const;
  void askForGrant(uint32_t rank);
  void applyNext();
  void onApplied(uint32_t rank, const PushName& name, uint64_t progress);
  void returnGrant(uint32_t rank);
  void settle(uint32_t rank);
  void settleAll();
  void answer(PushCallback callback, PushAnswer what);
  StepState stateOf(uint32_t rank, Outcome outcome, uint64_t staleness) const;

  const CoordinatorContext context_;
  uint64_t last_step_;  // the declared number of steps, or the step at which the job stops
  Updater updater_;
  CutTaker cut_;
  bool holding_ = false;
  TimePoint hold_until_;
  WaitingCalls<PushAnswer, Contribution> parked_;  // pushes that wait for a cut to be taken first
  WaitingCalls<PushAnswer, Wait> waiting_;
  std::vector<Worker> workers_;
  StepParts parts_;
  StalenessBound bound_;
  std::deque<Contribution> queue_;    // at most kQueuedPerWorkerMax per worker
  std::deque<uint32_t> grant_queue_;  // ranks that await a grant, in order of their requests
  uint64_t accepted_ = 0;             // pushes taken, applied or queued
  uint64_t granted_ = 0;              // grants held and not used
  bool resumed_ = false;              // ps/0, from its replica
  TimePoint grants_of_before_until_;  // end of the reservation of grants from before
  CoordinatorStatus counters_;
};

}  // namespace dtf::replication
