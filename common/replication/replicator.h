#pragma once

// The sending half of `durability: replica`: the shard of each ps is also on the next ps (the last
// one's on ps/0). An update counts only when the other ps has received it: until then no answer
// contains it. So the loss of one ps loses no update that was answered.
//
//   state        the replica                        then
//   unseeded     is not there, or of another        seed as soon as nothing is being applied
//                process of the backup
//   seeding      is under way                       no update begins
//   whole        equals the store                   an update is sent, and applied here meanwhile
//   sent         may lack the last update           it counts when both are done
//
// One message at a time: the next update waits for the answer to the one before, so nothing queues.
// Training never goes on without the replica. A lost backup is awaited, like every ps of a job, and
// seeded before the next update counts. Otherwise the loss of two ps, one soon after the other,
// could bring back an old replica.
//
// Rejected: a log of updates in which the backup may lag behind (it needs a bound, and a rule for
// reaching it; with one message the wait of the step is the bound); sending the new parameters in
// place of the gradient (one more arena for each slot).

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <variant>
#include <vector>

#include "common/checkpoint/held_values.h"
#include "common/optimizer/parameter_store.h"
#include "common/replication/answer.h"
#include "common/replication/push_memory.h"

namespace dtf::replication {

// Returns the ps that keeps the replica of a shard. There are at least two ps.
inline uint32_t backupOf(uint32_t ps_task, uint32_t ps_tasks) {
  return (ps_task + 1) % ps_tasks;
}

// A shard's state without its arenas.
struct ReplicaState : checkpoint::HeldValues {
  optimizer::OptimizerClock::State clock;
  PushMemory memory;
};

// A whole shard.
struct ReplicaSeed {
  ReplicaState state;
  // The parameters, then each slot, then, perhaps, the parameters before the last update.
  std::vector<std::span<const float>> arenas;
  std::shared_ptr<const void> owner;  // keeps the arenas alive
  // The owners of received arenas, one each, in place of `owner`: arenas of slots are released
  // early.
  std::vector<std::shared_ptr<const void>> owners{};

  const std::shared_ptr<const void>& ownerOf(size_t arena) const {
    return owners.empty() ? owner : owners.at(arena);
  }
};

struct ReplicaUpdate {
  uint64_t epoch = 0;
  uint64_t version = 0;      // after the update
  arena::Gradient gradient;  // the mean of the update's gradients
  UpdateNote note;
};

// A link to the ps that keeps the replica.
// Threads: loop-thread only. No call answers before it returns.
class ReplicaLink {
 public:
  virtual ~ReplicaLink() = default;
  // Announces the number of elements of the declared shard; perhaps again, with another number.
  virtual void open(uint64_t elements) = 0;
  // Sends `seed` until the backup answers, then calls ShardBackup::onHeard(ticket). A later
  // process of the backup doesn't receive it.
  virtual void seed(uint64_t ticket, const ReplicaSeed& seed) = 0;
  virtual void update(uint64_t ticket, const ReplicaUpdate& update) = 0;
  // Requests the replica that the backup keeps.
  virtual void fetch(std::function<void(std::variant<ReplicaSeed, Error>)> fetched) = 0;
  // Whether the backup was there and has been lost: its return is awaited.
  virtual bool isAway() const = 0;
};

// Borrows: everything given to the constructor.
// Threads: loop-thread only.
// Blocks: never.
class Replicator {
 public:
  // `tickets`: counts the messages of this process of the ps.
  Replicator(const optimizer::ParameterStore& store, ReplicaLink& link, uint64_t& tickets)
      : store_(store), link_(link), tickets_(tickets) {}

  // Starts with the store's values. `state` describes them, without version and clock. `whole`: the
  // backup has them.
  void begin(ReplicaState state, bool whole);
  // Notes a process of the backup that holds nothing of this store.
  void onBackup();
  void onHeard(uint64_t ticket);

  // Calls `then`, at once or later, when the backup holds the same values as the store. One call at
  // a time.
  void whenWhole(std::function<void()> then);
  // Sends the store's next update, which is about to be applied, and calls `received` when the
  // backup has it. Precondition: isWhole(), and the update before counts.
  void send(const arena::Gradient& mean, const UpdateNote& note, std::function<void()> received);
  // Notes that the update that was sent is in store.newest().
  void applied();

  bool isWhole() const { return whole_; }
  // Whether a message waits for its answer.
  bool awaitsAnswer() const { return awaited_ != 0; }

 private:
  void seedNow();

  const optimizer::ParameterStore& store_;
  ReplicaLink& link_;
  uint64_t& tickets_;
  ReplicaState state_;  // its memory includes the update that was sent last
  bool begun_ = false;
  bool backup_there_ = false;
  bool whole_ = false;
  bool applying_ = false;
  uint64_t awaited_ = 0;            // ticket; 0: no answer is awaited
  std::function<void()> received_;  // of the update that was sent
  std::function<void()> when_whole_;
};

}  // namespace dtf::replication
