#pragma once

// The sending half of `durability: replica`: the shard of each ps is also on the next one (the last
// one's on ps/0). An update counts, which means that anybody can see it or is told of it, only when
// the other ps has received it; so the loss of one ps loses no update that was answered.
//
//   state        the replica                        then
//   unseeded     is not there, or of another        seed as soon as nothing is being applied
//                process of the backup
//   seeding      is under way                       no update begins
//   whole        is what the store is               an update is sent, and applied here meanwhile
//   sent         may lack the last update           it counts when both are done
//
// One message at a time: the next update waits for the answer to the one before, so nothing queues.
// There is no state in which training goes on without its replica. A lost backup is awaited, as
// every ps of a job is, and seeded before the next update counts: else the loss of two ps, one soon
// after the other, could bring an old replica back for a new one.
//
// What was rejected: a log of updates that the backup may lag behind in (a bound, and what to do at
// it; with one message the step's own wait is the bound); sending the new parameters instead of the
// gradient (an arena for each slot more).

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <variant>
#include <vector>

#include "common/ps/answer.h"
#include "common/ps/job_recovery.h"
#include "common/ps/parameter_store.h"
#include "common/ps/push_memory.h"

namespace dtf::ps {

// On which ps the replica of a shard is kept. There are two ps at least.
inline uint32_t backupOf(uint32_t ps_task, uint32_t ps_tasks) {
  return (ps_task + 1) % ps_tasks;
}

// A shard's state without its arenas.
struct ReplicaState {
  uint64_t epoch = 0;
  EpochOrigin origin = EpochOrigin::kInitialValues;
  CutName origin_cut;
  uint64_t version = 0;
  OptimizerClock::State clock;
  PushMemory memory;
};

// A whole shard.
struct ReplicaSeed {
  ReplicaState state;
  // The parameters, then each slot, then, perhaps, the parameters before the last update.
  std::vector<std::span<const float>> arenas;
  std::shared_ptr<const void> owner;  // keeps the arenas
  // Of arenas that were received, one each, in place of `owner`: the slots' are not kept for long.
  std::vector<std::shared_ptr<const void>> owners{};

  const std::shared_ptr<const void>& ownerOf(size_t arena) const {
    return owners.empty() ? owner : owners.at(arena);
  }
};

struct ReplicaUpdate {
  uint64_t epoch = 0;
  uint64_t version = 0;  // after it
  Gradient gradient;     // the mean of the update's
  UpdateNote note;
};

// To the ps that keeps the replica.
// Threads: loop-thread only. No call answers before it returns.
class ReplicaLink {
 public:
  virtual ~ReplicaLink() = default;
  // The model is declared: the shard has so many elements. Perhaps again, with another number.
  virtual void open(uint64_t elements) = 0;
  // Says it until it is answered, then Shard::onReplicaHeard(ticket); not to a process of the
  // backup that is met later.
  virtual void seed(uint64_t ticket, const ReplicaSeed& seed) = 0;
  virtual void update(uint64_t ticket, const ReplicaUpdate& update) = 0;
  // Asks for what is kept.
  virtual void fetch(std::function<void(std::variant<ReplicaSeed, Error>)> fetched) = 0;
  // The backup was there, and has been lost: its return is awaited.
  virtual bool isAway() const = 0;
};

// Borrows: everything given to the constructor.
// Threads: loop-thread only.
// Blocks: never.
class Replicator {
 public:
  // `tickets`: counts the messages of this process of the ps.
  Replicator(const ParameterStore& store, ReplicaLink& link, uint64_t& tickets)
      : store_(store), link_(link), tickets_(tickets) {}

  // The store has values. `state`: theirs, version and clock left out. `whole`: the backup has
  // them.
  void begin(ReplicaState state, bool whole);
  // A process of the backup is there that holds nothing of this store.
  void onBackup();
  void onHeard(uint64_t ticket);

  // Calls `then` once the backup holds what the store does: at once, or later. One at a time.
  void whenWhole(std::function<void()> then);
  // Sends the store's next update, which is about to be applied; `received` is called when the
  // backup has it. When whole, and after the one before counts.
  void send(const Gradient& mean, const UpdateNote& note, std::function<void()> received);
  // The update that was sent is in store.newest().
  void applied();

  bool isWhole() const { return whole_; }
  // Something was sent that has not been answered.
  bool awaitsAnswer() const { return awaited_ != 0; }

 private:
  void seedNow();

  const ParameterStore& store_;
  ReplicaLink& link_;
  uint64_t& tickets_;
  ReplicaState state_;  // memory: with the update that was sent last
  bool begun_ = false;
  bool backup_there_ = false;
  bool whole_ = false;
  bool applying_ = false;
  uint64_t awaited_ = 0;            // ticket; 0: no answer is awaited
  std::function<void()> received_;  // of the update that was sent
  std::function<void()> when_whole_;
};

}  // namespace dtf::ps
