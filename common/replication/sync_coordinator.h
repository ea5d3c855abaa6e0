#pragma once

// Synchronous training: each step applies the mean of N = replicas_to_aggregate gradients, computed
// from the same parameters. A step counter, no token queue. T = total_num_replicas workers.
//
//   N >= T  Each rank owes a fixed quota of batches: N/T, and one more for the first N%T ranks.
//           The set of a step is fixed, so each ps applies it by itself once it is complete. A
//           batch that isn't the rank's last of the step is answered kQueued at once, the last one
//           when the step is applied.
//   N < T   Backup workers. ps/0 decides (set_decider.h): the others report each gradient they
//           hold, and apply the announced set. Gradients outside the set, and later ones, are
//           answered kStale with fresh parameters.
//
// In a job that reads every example once an epoch, a gradient's weight is its number of examples;
// the gradient of an empty share is left out of the mean (step_shares.h).
//
// Gradients are summed in rank order, then batch order, never in order of arrival. So for N >= T a
// run is a pure function of the file and the seed, to the bit. A gradient is kept until its step is
// over, even when its sender is replaced: the new process would compute the same, and other ps may
// count on it.
//
//   state                from -> to            when
//   a push of this step  - -> held             it is the first with this (rank, batch)
//   a push of this step  held -> held          it is repeated: the newer call takes over the wait
//   the step             open -> updating      N >= T: all N are held;  N < T: ps/0's decision
//   the step             updating -> next open the update is committed: waiting calls are answered
//   a waiting call       -> kApplied, kStale   its step is committed, with or without it
//   a waiting call       -> Error              too few workers are left, or it has waited too long
//   a worker             lost -> awaited       its gradients are needed: for rejoin_timeout the
//                                              calls that wait have no deadline, and its successor
//                                              computes the missing gradients
//   a worker             awaited -> given up   it did not return in time: too few are left

#include <optional>
#include <string>
#include <vector>

#include "common/replication/coordinator.h"
#include "common/replication/gone_workers.h"
#include "common/replication/set_decider.h"
#include "common/replication/step_shares.h"
#include "common/replication/updater.h"
#include "common/replication/waiting_calls.h"

namespace dtf::replication {

// See Coordinator. Gradients held: at most max(N, T) arenas.
class SyncCoordinator final : public Coordinator {
 public:
  explicit SyncCoordinator(const CoordinatorContext& context);

  void pull(uint32_t rank, const Wanted& wanted, PushCallback callback) override;
  void push(Contribution contribution, PushCallback callback) override;
  void joined(uint32_t rank, Incarnation incarnation) override;
  void finished(uint32_t rank) override;
  void lost(uint32_t rank, const std::string& why) override;
  std::string awaitedText() const override;
  bool awaitsReturn() const override;
  void extendDeadlines() override;
  void failAll(const Error& error) override;
  std::vector<Stranded> takeWaiting() override;
  void tick() override;
  void onReceived(uint32_t ps_task, uint64_t step, uint32_t rank) override;
  void onDecision(uint64_t step, const std::vector<uint32_t>& ranks) override;
  void onLeaderLinked() override;
  void onFollowerLinked(uint32_t ps_task) override;
  CutPosition position(bool hold) override;
  void cutAt(CutPosition target, CutCallback callback) override;
  void releaseHold() override {}
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
  struct Worker {
    std::vector<std::optional<arena::Gradient>> batches;  // of the current step
    std::vector<float> losses;                            // of the same batches
    uint64_t sets = 0;                                    // bit k: it contributed to step() - 1 - k
    const Worker* pusher = nullptr;                       // with sums by host perhaps another
    bool complete() const;                                // also if the worker pushes none
    // Whether its gradient is here, by itself or in the mean of its host.
    bool hasContributed() const { return pusher->complete(); }
    uint32_t firstMissing() const;
    uint32_t lastBatch() const {
      return batches.empty() ? 0 : static_cast<uint32_t>(batches.size()) - 1;
    }
    // A repeated push can come long after its step; contributions are remembered for 64 steps.
    bool wasInSet(uint64_t steps_ago) const {
      return steps_ago <= 64 && sets >> (steps_ago - 1) & 1;
    }
  };

  uint64_t step() const { return context_.store.version(); }
  bool isDone() const { return step() >= last_step_; }
  bool hasBackups() const { return needed_ < workers_.size(); }
  bool leads() const { return context_.ps_task == 0; }

  bool refused(const Contribution& contribution, PushCallback& callback);
  bool answeredAsPast(const Contribution& contribution, PushCallback& callback);
  bool sentBack(const Contribution& contribution, PushCallback& callback);
  void hold(Contribution contribution);
  void wait(uint32_t rank, PushCallback callback);
  void advance();
  void report(uint32_t rank);
  bool announcesAfterwards() const;
  void announceLast();
  void startUpdate(std::vector<uint32_t> ranks);
  void onCommitted(const std::vector<uint32_t>& ranks);

  void gone(uint32_t rank, const std::string& why, Duration patience);
  bool isMissed(uint32_t rank) const;
  std::vector<uint32_t> awaitedReturns() const;
  std::optional<std::string> hopelessFor(uint32_t rank) const;
  void failHopeless();
  void failHopelessCut();
  void failCutBeyondTheEnd();
  std::string waitingForText() const;

  StepState stateNow(uint32_t rank, Outcome outcome) const;
  StepState queuedState(uint64_t step, uint32_t batch) const;
  void answer(PushCallback callback, PushAnswer what);

  const CoordinatorContext context_;
  const uint32_t needed_;  // N
  const StepShares shares_;
  uint64_t last_step_;  // the declared number of steps, or the step at which the job stops
  Updater updater_;
  CutTaker cut_;
  WaitingCalls<PushAnswer> waiting_;  // the pushes of last batches
  std::vector<Worker> workers_;
  size_t pushes_ = 0;  // without backup workers: the gradients that a step waits for
  GoneWorkers gone_;
  SetDecider decider_;     // ps/0, with backup workers
  bool has_sent_ = false;  // an answer, so its worker may compute a step
  bool resumed_ = false;   // from a replica, in this step
  // Of this step, though gradients are missing here: see onDecision().
  std::optional<std::vector<uint32_t>> decided_;
  float set_loss_ = 0;   // mean over the set being applied
  float last_loss_ = 0;  // mean over the set of the step before
  uint32_t held_ = 0;    // gradients of the current step
  CoordinatorStatus counters_;
};

}  // namespace dtf::replication
