#pragma once

// A ps's table of the job's workers: their membership, and notes of each one's process.

#include <cstdint>
#include <optional>
#include <vector>

#include "common/base/clock.h"
#include "common/base/error.h"
#include "common/base/ids.h"
#include "common/replication/membership.h"

namespace dtf::shard {

// Notes of a worker's process. A new process of the rank begins with none.
struct WorkerNotes {
  bool has_declared = false;       // the job's model
  std::optional<Error> refused{};  // it declared another model, before the chief declared
  bool has_trained = false;        // it has sent a gradient
  // It is between two steps, which may take long. Lost, finished, or at its next step: nullopt.
  std::optional<TimePoint> evaluates_since{};
};

// Owns: the table.
// Borrows: `clock` (must outlive this).
// Threads: loop-thread only.
// Blocks: never.
// Errors: those of Membership.
class WorkerTable {
 public:
  // `evaluation_max`: how long an evaluation counts as one.
  WorkerTable(uint32_t workers, Duration lease, Duration evaluation_max, const Clock& clock);

  replication::Membership& membership() { return membership_; }
  const replication::Membership& membership() const { return membership_; }
  uint32_t size() const { return membership_.workers(); }
  WorkerNotes& notes(uint32_t rank) { return notes_[rank]; }
  const WorkerNotes& notes(uint32_t rank) const { return notes_[rank]; }

  // Returns true for a new process of the rank.
  bool join(uint32_t rank, Incarnation incarnation);
  void heartbeat(uint32_t rank, Incarnation incarnation, bool evaluates);

  // Returns why this process can't make calls: it has not joined, was replaced, or declared another
  // model than the job's. Counts as a heartbeat.
  std::optional<Error> errorOf(uint32_t rank, Incarnation incarnation);

  bool isIn(uint32_t rank, replication::MemberState state) const {
    return membership_.member(rank).state == state;
  }
  bool isPresent(uint32_t rank) const { return isIn(rank, replication::MemberState::kJoined); }
  bool hasFinished(uint32_t rank) const { return isIn(rank, replication::MemberState::kFinished); }
  // Whether a present worker has sent a gradient.
  bool anybodyTrains() const;
  // Returns a worker that evaluates, unless it takes longer than it may.
  std::optional<uint32_t> whoEvaluates() const;

 private:
  const Duration evaluation_max_;
  const Clock& clock_;
  replication::Membership membership_;
  std::vector<WorkerNotes> notes_;  // by rank
};

}  // namespace dtf::shard
