#pragma once

// One ps task without threads, sockets or time of its own: a service or a simulator drives it from
// one loop.
//
//   join -> declare -> [chief: initialise] -> waitInitialised -> pull -> push* -> barrier* ->
//   finish
//
// Its values belong to an epoch (epoch.h). The chief may take it back to an earlier cut, in another
// epoch: recovery(). Pulls and pushes that come while it holds no values are parked until it does:
// their workers knew an earlier process of this ps.
//
// Immediate calls return or throw dtf::Error. Calls that may wait answer through their callback,
// exactly once, possibly before the call returns. No callback runs while the shard is inside its
// own state, so a callback may call the shard again. On destruction, callbacks that still wait are
// dropped.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/arena/model_declaration.h"
#include "common/base/clock.h"
#include "common/base/error.h"
#include "common/base/ids.h"
#include "common/optimizer/parameter_store.h"
#include "common/replication/coordinator.h"
#include "common/replication/membership.h"
#include "common/replication/replicator.h"
#include "common/shard/shard_backup.h"
#include "common/shard/shard_cuts.h"
#include "common/shard/shard_options.h"
#include "common/shard/shard_peers.h"
#include "common/shard/shard_readers.h"
#include "common/shard/shard_recovery.h"
#include "common/shard/shard_values.h"
#include "common/shard/shard_waits.h"
#include "common/shard/shard_workers.h"
#include "common/shard/worker_table.h"

namespace dtf::shard {

// By how many epochs a ps can be behind another: the returns to earlier cuts that it has missed.
inline constexpr uint64_t kEpochsMissedMax = 100;

struct ShardStatus {
  bool declared = false;
  bool initialised = false;
  bool all_finished = false;  // every worker has finished: the ps may end
  uint64_t steps = 0;         // declared
  uint64_t epoch = 0;         // of the values; 0: it holds none
  bool saved = false;         // the newest parameters are in a checkpoint's file
  std::vector<replication::Member> members;
  std::string missing;  // the missing members; see Membership::missingText
  bool trains = false;  // a present worker has sent a gradient, or this ps took its replica
  uint32_t callers_waiting = 0;
  uint64_t gradient_bytes = 0;  // of all gradients that came to this process, repeated ones too
  replication::CoordinatorStatus coordinator;
  std::optional<replication::Straggler> straggler{};  // see StragglerFinder
};

// The event that calls wait for, this ps's values included. See Coordinator::awaitedText() and
// awaitsReturn().
struct AwaitedEvent {
  std::string text;        // empty: no call has waited long
  bool is_return = false;  // calls that wait have no deadline
};

// A facade: it takes the calls about parameters itself, and gives out the objects that take the
// others.
// Owns: all state of one ps task.
// Borrows: `clock`, `runner`, `peers`, `replica` (must outlive this; `peers` may be null with one
// ps, `replica` where none is kept).
// Threads: loop-thread only, also the objects that it gives out.
// Blocks: never, but for updates of a small arena, or with a runner that calls `done` from start().
// Errors: kBadConfig: a declaration, rank or size doesn't fit; kPermission: the call is another
// task's to make; kUnavailable: "fenced: ...", a lost worker, or a call that came too early;
// kDeadline: a wait ran out, with the awaited tasks.
class Shard {
 public:
  using Aside = shard::Aside;

  Shard(const ShardOptions& options, const Clock& clock, optimizer::UpdateRunner& runner,
        replication::SyncPeers* peers, replication::ReplicaLink* replica = nullptr);
  ~Shard();

  // Keeps the arrays of the declared model on `device` (ParameterStore has the limits of that).
  // Call it before a model is declared. A step then has one gradient, and there is no replica.
  void keepOn(std::shared_ptr<optimizer::DeviceArrays> device) {
    values_.keepOn(std::move(device));
  }

  // Workers about themselves: they join, declare the model, meet at barriers, finish, are lost.
  ShardWorkers& workers() { return workers_; }
  // Checkpoints, for the chief.
  ShardCuts& cuts() { return cuts_; }
  // The chief takes the shard back to saved values, or fills it from its replica.
  ShardRecovery& recovery() { return recovery_; }
  // Callers that only read the parameters.
  ShardReaders& readers() { return readers_; }
  // Messages from other ps.
  ShardPeers& peers() { return peers_; }
  // Answers of the ps that keeps this shard's replica.
  ShardBackup& backup() { return backup_; }

  // Returns the job's model; nullopt: none is declared.
  const std::optional<arena::ModelDeclaration>& declaration() const {
    return values_.declaration();
  }
  // Returns the elements of this shard's arena; 0 when no model is declared.
  uint64_t elements() const { return values_.elements(); }
  // Returns the values as they are now.
  checkpoint::HeldValues held() const { return values_.held(); }

  // Takes the initial values, of this shard's `elements`; `epoch` begins with them. Returns false
  // when it holds values of that epoch or a later one: it keeps them. See ShardRecovery.
  bool initialise(uint32_t rank, Incarnation incarnation, std::span<const float> values,
                  uint64_t epoch = replication::kFirstEpoch);
  void waitInitialised(uint32_t rank, Incarnation incarnation, Duration timeout,
                       replication::WaitCallback callback);
  // Answers once this shard's epoch is `epoch` or a later one.
  void pull(uint32_t rank, Incarnation incarnation, const replication::Wanted& wanted,
            replication::PushCallback callback, uint64_t epoch = 0);
  // Answers with values to read beside training, once no update is running and this shard has
  // values. It doesn't count as a pull; only global_step and epoch of its answer's state are set.
  // It answers kBadConfig when no averages are kept.
  void pullAside(uint32_t rank, Incarnation incarnation, Aside what,
                 replication::PushCallback callback);
  // Answers kWentBack to a gradient of another epoch, which has no effect.
  void push(replication::Contribution contribution, replication::PushCallback callback);

  // Calls ParameterStore::shareParameters(); no effect without a model.
  void shareParameters();

  AwaitedEvent awaited() const;
  ShardStatus status() const;
  // Answers every call that waits with `error`: this ps is about to end.
  void failAll(const Error& error);
  // Checks leases and deadlines. Call it a few times a second.
  void tick();

 private:
  // ---- an epoch's beginning
  void take(const Beginning& beginning, const std::function<void()>& fill);
  void loseValues(std::vector<replication::Coordinator::Stranded> stranded, const Error& error);
  void resumeParked();
  void answerWentBack(uint32_t rank, replication::PushCallback callback);
  void answerAside();
  // ---- calls that come too early or too late
  bool mayPark() const { return values_.isDeclared() && options_.rejoin_timeout > Duration{0}; }
  bool canCome(uint64_t epoch) const;
  Error cannotCome(uint32_t rank, uint64_t epoch) const;
  // ---- waits
  bool awaitsReplica() const { return values_.initialised() && backup_.isAwaited(); }
  void holdDeadlines();
  std::string awaitedText() const;

  const ShardOptions options_;
  const Clock& clock_;
  replication::OutwardCalls calls_;
  WorkerTable table_;
  ShardBackup backup_;
  ShardValues values_;
  ShardWaits waits_;
  ShardWorkers workers_;
  ShardCuts cuts_;
  ShardReaders readers_;
  ShardPeers peers_;
  ShardRecovery recovery_;
  uint64_t gradient_bytes_ = 0;  // see ShardStatus
};

}  // namespace dtf::shard
