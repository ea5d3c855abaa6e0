#pragma once

// What one ps task is, without threads, sockets or time of its own: a service or a simulator drives
// it from one loop.
//
//   join -> declare -> [chief: initialise] -> waitInitialised -> pull -> push* -> barrier* ->
//   finish
//
// Its values are of an epoch (epoch.h). The chief may take it back to an earlier cut, of another
// epoch: restore(). Pulls and pushes that come while it holds no values are parked until it does:
// they are of workers that knew a process of this ps before this one.
//
// Immediate calls answer by returning or throwing dtf::Error; calls that may wait answer through
// their callback, exactly once, possibly before the call returns (never while the shard is inside
// its own state: the callback may call the shard again). On destruction, callbacks that still wait
// are dropped.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/clock.h"
#include "common/base/error.h"
#include "common/base/ids.h"
#include "common/ps/barrier.h"
#include "common/ps/coordinator.h"
#include "common/ps/job_recovery.h"
#include "common/ps/membership.h"

namespace dtf::ps {

struct ShardOptions {
  uint32_t ps_task = 0;
  uint32_t ps_tasks = 1;
  uint32_t workers = 1;
  Duration lease = std::chrono::seconds(10);  // Duration::max(): workers are never lost by time
  // Longest wait of one push or pull for what is on this ps. With several ps, rejoin_timeout comes
  // on top: workers whose gradients are missed may themselves be waiting for another ps to return.
  Duration step_timeout = std::chrono::seconds(60);
  // How long a step that needs a lost worker waits for its return; 0: it fails at once.
  Duration rejoin_timeout{};
  // Ranks that had finished before this ps was started: nobody waits for them.
  std::vector<uint32_t> finished_workers{};
  // How long the calls of others have no deadline while a worker evaluates.
  Duration evaluation_max = std::chrono::seconds(600);
  uint64_t memory_bytes = 0;  // of this host: a model that needs more is refused; 0: not known
};

// How long calls may wait for a chief that lives to bring values: it may read a large checkpoint
// from a slow disk, more than once.
inline constexpr Duration kBringBackMax = std::chrono::minutes(30);

// By how many epochs a ps can be behind another: those of goings back that it has missed.
inline constexpr uint64_t kEpochsMissedMax = 100;

// A shard's state at a cut, and what the shard is once it has it.
struct RestoredShard {
  uint64_t epoch = kFirstEpoch;  // that begins with it
  EpochOrigin origin = EpochOrigin::kCheckpoint;
  CutName cut;
  CutPosition position;
  uint64_t version = 0;
  Buffer values;              // the arena
  std::vector<Buffer> slots;  // arenas
  OptimizerClock::State clock;
};

struct ShardStatus {
  bool declared = false;
  bool initialised = false;
  bool all_finished = false;  // every worker has finished: the ps may end
  uint64_t steps = 0;         // declared
  uint64_t epoch = 0;         // of the values; 0: it holds none
  bool saved = false;         // the newest parameters are in a checkpoint's file
  std::vector<Member> members;
  std::string missing;  // who is awaited, since when; see Membership::missingText
  bool trains = false;  // a worker that is there has sent a gradient, or this ps took its replica
  uint32_t callers_waiting = 0;
  uint64_t gradient_bytes = 0;  // of all gradients that came to this process, repeated ones too
  CoordinatorStatus coordinator;
};

// Owns: all state of one ps task.
// Borrows: `clock`, `runner`, `peers`, `replica` (must outlive this; `peers` may be null with one
// ps, `replica` where none is kept).
// Threads: loop-thread only.
// Blocks: never, but for updates of a small arena, or whose runner calls `done` from start().
// Errors: kBadConfig a declaration, rank or size that doesn't fit; kPermission what
// is another task's to do; kUnavailable "fenced: ...", a lost worker, or a call too early;
// kDeadline a wait that ran out, naming what was awaited.
class Shard {
 public:
  Shard(const ShardOptions& options, const Clock& clock, UpdateRunner& runner, SyncPeers* peers,
        ReplicaLink* replica = nullptr);
  ~Shard();

  // Before declare(): the arrays of what is declared are on `device`, not here (ParameterStore has
  // what that rules out). A step then has one gradient, and there is no replica.
  void keepOn(std::shared_ptr<DeviceArrays> device);
  // Those of the newest step, with their elements. Not before there are values.
  std::shared_ptr<const Snapshot> readableParameters();

  // See ParameterStore. Nothing where there is no model, or none any more.
  void shareParameters();

  // Returns true for a new process of the rank. A newer incarnation replaces and fences the one
  // before.
  bool join(uint32_t rank, Incarnation incarnation);

  // The first declaration of a sane model is the job's until the chief has declared: then the
  // chief's is. The others must equal it; who has declared otherwise before the chief is refused by
  // its next call that waits.
  // Errors: kBadConfig naming the worker whose declaration differs, what differs, and both values.
  void declare(uint32_t rank, Incarnation incarnation, const ModelDeclaration& declaration);
  // Why this process has no say about parameters yet: it has not joined, or not declared the job's
  // model. Throws when it never will: it was replaced, or has declared another model.
  std::optional<Error> notYetDeclared(uint32_t rank, Incarnation incarnation);
  // Throws unless this live process has declared the job's model.
  void checkDeclared(uint32_t rank, Incarnation incarnation);

  // `evaluates`: it is between two steps, and others may wait for its next one for long.
  void heartbeat(uint32_t rank, Incarnation incarnation, bool evaluates = false);
  void finish(uint32_t rank, Incarnation incarnation);
  // Throws kPermission when this live process can't end the job by failing: it has finished, or it
  // has sent no gradient itself and another one that lives has. The job goes on without it. But the
  // chief that has declared the job's model may: whether there are values to go on with is its to
  // say.
  void checkMayEndJob(uint32_t rank, Incarnation incarnation);
  // The worker's process is known to be gone (its connection was reset and its launcher says so):
  // don't wait for the lease to run out.
  void markLost(uint32_t rank);
  // Workers that have not come to this ps though others train: lost to it, until they do.
  void giveUpAwaited();
  // This live process says why it goes: lost, as one whose process has ended.
  void leave(uint32_t rank, Incarnation incarnation, const std::string& reason);

  // Takes the initial values, of this shard's `elements`; `epoch` begins with them, as with a cut
  // that the chief goes back to: see restore(). False: it holds values of that epoch or a later
  // one, and keeps them.
  bool initialise(uint32_t rank, Incarnation incarnation, std::span<const float> values,
                  uint64_t epoch = kFirstEpoch);
  void waitInitialised(uint32_t rank, Incarnation incarnation, Duration timeout,
                       WaitCallback callback);

  // Answered once this shard's epoch is `epoch` or a later one.
  void pull(uint32_t rank, Incarnation incarnation, const Wanted& wanted, PushCallback callback,
            uint64_t epoch = 0);
  // What is read beside training: the moving averages, or the parameters, once no update is
  // running, and this shard has values. It doesn't count as a pull; the answer's state says only
  // how many updates are in them. Answers kBadConfig when no averages are kept.
  enum class Aside : uint8_t { kAverages, kParameters };
  void pullAside(uint32_t rank, Incarnation incarnation, Aside what, PushCallback callback);
  // A gradient of another epoch has no effect: kWentBack.
  void push(Contribution contribution, PushCallback callback);
  void barrier(uint32_t rank, Incarnation incarnation, std::string_view name, Arrival arrival,
               Duration timeout, WaitCallback callback);

  // From another ps of the job (see SyncPeers). What is of an epoch that this shard has left has no
  // effect.
  // Errors: kBadData when it breaks the protocol.
  void onReceived(uint32_t ps_task, StepName step, uint32_t rank);
  void onDecision(StepName step, const std::vector<uint32_t>& ranks);
  // Another connection to ps/0 is there, perhaps to another process of it: it is told again what
  // this ps holds.
  void onLeaderLinked();
  // See Coordinator.
  void onFollowerLinked(uint32_t ps_task);

  // ---- checkpoints: for the chief, whose incarnation is checked

  // True once the shard holds values: a restarted chief neither initialises nor restores.
  bool initialised() const { return store_ && store_->initialised(); }
  // What it holds, for the chief to decide with.
  PsWord word() const;
  CutPosition position(Incarnation chief, bool hold);
  // `epoch`: of the positions that the target was chosen from; kUnavailable when it was left.
  void cutAt(Incarnation chief, uint64_t epoch, CutPosition target, CutCallback callback);
  void releaseHold(Incarnation chief);
  // What cutAt() captured at `position`, with the declared model. Its memory goes with the last
  // user after releaseCapture().
  // Errors: kUnavailable when another cut was captured, or none.
  struct Captured {
    std::shared_ptr<const Capture> capture;  // never null
    ModelDeclaration declaration;
  };
  Captured captured(Incarnation chief, const CutPosition& position);
  void releaseCapture();
  // The capture of that version is durable.
  void noteSaved(uint64_t version) { saved_version_ = version; }
  // The chief has every ps read a cut to go back to, restore() follows: until then calls that wait
  // have no deadline, while the chief lives and for kBringBackMax at most.
  void expectRestore(Incarnation chief);
  // Takes `state`, in place of initialise() or of what it holds, and lets the waiting workers go
  // on: whoever waits for the answer to a push is answered kWentBack. False: it is on that epoch
  // already.
  // Errors: kUnavailable when it is on a later one. kBadConfig, kBadData when the state doesn't
  // fit, or there is no memory for it: this shard is empty then, and whoever waited is told why.
  bool restore(Incarnation chief, const RestoredShard& state);
  const std::optional<ModelDeclaration>& declaration() const { return declaration_; }

  // ---- the replica of this shard (replicator.h), by its link

  // Another process of the ps that keeps it is there, with nothing of this shard's.
  void onReplicaBackup();
  void onReplicaHeard(uint64_t ticket);
  // An empty shard fetches its replica, in place of initialise() or restore(). Nothing was lost, so
  // `epoch` goes on. No effect when it is on that epoch already.
  // Errors: kUnavailable when it holds other values, or none are kept; kBadData when what comes
  // doesn't fit.
  void refill(Incarnation chief, uint64_t epoch, WaitCallback callback);

  // Answered once the backup holds what this shard does, on `epoch`.
  // Errors: kUnavailable when none is kept, this shard is on another epoch or leaves that one, or
  // when the chief asks again; to the callback.
  void awaitReplica(Incarnation chief, uint64_t epoch, WaitCallback callback);

  // Any worker may ask the job to end after the steps under way. Only ps/0 can see to it.
  void requestStop(uint32_t rank, Incarnation incarnation);

  // See Coordinator::awaitedText(), awaitsReturn(): or for the values of this ps.
  std::string awaitedText() const;
  bool awaitsReturn() const;

  // Answers every call that waits with `error`: this ps is about to end.
  void failAll(const Error& error);

  // Leases, deadlines. To be called a few times a second.
  void tick();

  ShardStatus status() const;
  bool declared() const { return declaration_.has_value(); }
  // Elements of this shard's arena; 0 before declare().
  uint64_t elements() const;

 private:
  struct InitWaiter {
    uint32_t rank = 0;
    WaitCallback callback;
    TimePoint deadline;
    Duration timeout;
  };
  bool anybodyTrains() const;
  // A pull or a push that waits for values of an epoch.
  struct Parked {
    uint32_t rank = 0;
    Incarnation incarnation;
    uint64_t epoch = 0;  // a pull's: the earliest
    Wanted wanted{};
    std::optional<Contribution> contribution;  // a push's
    std::optional<Aside> aside;                // it is a pull of this
    PushCallback callback;
    TimePoint since;     // it came
    TimePoint deadline;  // while the chief is at work: put off, to kBringBackMax after `since`
  };
  struct EarlyReport {
    uint32_t ps_task = 0;
    StepName step;
    uint32_t rank = 0;
  };
  struct AsideWaiter {
    uint32_t rank = 0;
    Aside what = Aside::kAverages;
    PushCallback callback;
    TimePoint deadline;
  };
  void lose(const Membership::Loss& loss);
  bool mayPark() const { return store_ && options_.rejoin_timeout > Duration{0}; }
  static bool isOlder(const Parked& push, const Parked& waiting);
  void park(Parked call);
  void dropParked(uint32_t rank, const Error& error);
  bool chiefLives() const;
  bool isGoingBack() const;
  void holdDeadlines();
  bool canCome(uint64_t epoch) const;
  Error cannotCome(uint32_t rank, uint64_t epoch) const;
  void expireParked();
  void resumeParked();
  void answerWentBack(uint32_t rank, PushCallback callback);
  // What a line of values begins with.
  struct Beginning {
    uint64_t epoch = 0;
    EpochOrigin origin = EpochOrigin::kInitialValues;
    CutName cut;
    bool at_rest = false;      // nobody has been sent to a step beyond them
    bool has_replica = false;  // the backup is known to hold them
  };
  void take(const Beginning& beginning, const std::function<void()>& fill);
  void leaveEpoch(std::vector<Coordinator::Stranded>& stranded);
  void loseValues(std::vector<Coordinator::Stranded> stranded, const Error& error);
  bool awaitsReplica() const;
  std::string awaitedReplicaText() const;
  void answerReplicaWaiter(const WaitAnswer& answer);
  void awaitAbsent();
  void takeReplica(uint64_t epoch, const ReplicaSeed& seed, uint64_t backups_met);
  void beginEpoch(const Beginning& beginning);
  void answerAside();
  void dropAside(uint32_t rank, const Error& error);
  void expireAside();
  void letInitWaitersGo(bool at_rest);
  void checkChief(Incarnation chief, std::string_view what);
  void dropInitWaiter(uint32_t rank, const Error& error);
  void expireInitWaiters();
  void takeChiefsWord(const ModelDeclaration& declaration);
  Error refusal(uint32_t rank, const ModelDeclaration& theirs, const ModelDeclaration& job) const;
  void validate(const ModelDeclaration& declaration) const;
  void adopt(const ModelDeclaration& declaration);
  void recallMembers();
  Duration stepPatience() const;
  std::optional<uint32_t> whoEvaluates() const;
  uint64_t arenaBytes(const ModelDeclaration& declaration) const;
  Error noMemory(const ModelDeclaration& declaration) const;
  std::string uninitialisedText() const;
  std::unique_ptr<ParameterStore> makeStore(const ModelDeclaration& declaration) const;
  Error notDeclared(std::string_view what) const;
  Error noReplica() const;
  Error gaveWay(uint32_t rank) const;
  std::optional<Error> badEpoch(uint64_t epoch, const std::string& whose) const;
  void requireEpoch(uint64_t epoch, const std::string& whose) const;
  std::optional<Error> membershipError(uint32_t rank, Incarnation incarnation);
  std::optional<Error> stepError(uint32_t rank, Incarnation incarnation, std::string_view what);

  const ShardOptions options_;
  const Clock& clock_;
  UpdateRunner& runner_;
  SyncPeers* const peers_;
  ReplicaLink* const replica_;
  std::shared_ptr<DeviceArrays> device_;  // null: the arrays are here
  OutwardCalls calls_;
  Membership membership_;
  Barriers barriers_;
  std::optional<ModelDeclaration> declaration_;
  uint32_t declarer_ = 0;                         // whose declaration_ is
  std::set<uint32_t> declared_alike_;             // ranks
  std::map<uint32_t, TimePoint> evaluate_since_;  // ranks that say so
  std::map<uint32_t, Error> refused_;  // ranks that declared otherwise, before the chief did
  uint64_t gradient_bytes_ = 0;        // see ShardStatus
  std::set<uint32_t> trained_;         // ranks whose process has sent a gradient
  bool refilled_ = false;              // from its replica, so others have trained before it came
  uint64_t epoch_ = 0;                 // of the store's values; 0: none
  EpochOrigin origin_ = EpochOrigin::kInitialValues;
  CutName origin_cut_;
  std::optional<TimePoint> restore_expected_since_;
  std::vector<Parked> parked_;              // at most one for each rank
  std::vector<EarlyReport> early_;          // of epochs that are still to come here
  std::vector<AsideWaiter> aside_waiters_;  // at most one for each rank
  uint64_t backups_met_ = 0;                // processes of the ps that keeps the replica
  uint64_t replica_tickets_ = 0;
  WaitCallback replica_waiter_;  // the chief's; null: nobody waits
  std::unique_ptr<ParameterStore> store_;
  std::unique_ptr<Replicator> replicator_;  // null: there is no replica
  std::unique_ptr<Coordinator> coordinator_;
  std::vector<InitWaiter> init_waiters_;
  bool stop_requested_ = false;
  std::optional<uint64_t> saved_version_;
};

}  // namespace dtf::ps
