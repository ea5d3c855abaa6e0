#pragma once

// Membership in the job: one lease per worker rank, renewed by heartbeats. A process that lost its
// lease, or was replaced by a newer one, is fenced: its messages have no effect any more.

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/ids.h"

namespace dtf::replication {

//   from      when                           to        why in this order
//   awaited   join                           joined    first process of the rank
//   joined    join by another incarnation    joined    a restart may be faster than the lease: the
//                                                      newest wins
//   joined    finish                         finished  its work is done; its lease no longer
//                                                      matters
//   awaited   it had finished before         finished  reported to this ps when it was started
//   joined    no heartbeat for the lease     lost      fenced for ever; only a new incarnation may
//                                                      join
//   awaited   others train, and it stays     lost      it was missing before this ps was started
//             away
//   lost      join by a new incarnation      joined
//   finished  join by a new incarnation      joined    a restart of a job's task; it finds the job
//                                                      done
//   any       join by an earlier attempt     -         fenced: its hello was under way for long,
//                                                      and its successor's came first
//   joined    join by an earlier process,    -         fenced: it slept, and woke after a restart
//             where attempts aren't counted            of this ps, which met only its successor.
//                                                      The time of day decides, so it may join once
//                                                      the successor is lost or has finished
enum class MemberState : uint8_t { kAwaited, kJoined, kFinished, kLost };
std::string_view memberStateName(MemberState state);  // "awaited"

struct Member {
  MemberState state = MemberState::kAwaited;
  Incarnation incarnation;  // of the last process that joined
  TimePoint since;          // of `state`
  TimePoint heard;          // last heartbeat
};

// Owns: the table.
// Threads: loop-thread only.
// Blocks: never.
// Errors: kUnavailable "fenced: ..." for a process that was replaced or lost, kPermission for one
// that never joined, kBadConfig for an unknown rank.
class Membership {
 public:
  // `lease`: a worker without a heartbeat for longer is lost. Duration::max(): never.
  Membership(uint32_t workers, Duration lease, const Clock& clock);

  // Returns true for a new process of the rank, false when it had joined already.
  // Errors: kUnavailable "fenced: ..." for a process that was lost or replaced, even before it
  // joined: its attempt is lower than the attempt of the rank's last process, or, where attempts
  // aren't counted, it started before that process, which is present.
  bool join(uint32_t rank, Incarnation incarnation);
  void heartbeat(uint32_t rank, Incarnation incarnation);
  void finish(uint32_t rank, Incarnation incarnation);  // again: no effect
  // Marks an awaited member as finished before this ps was started.
  void hasFinished(uint32_t rank);
  // Throws unless `incarnation` is the rank's live process. Counts as a heartbeat.
  void check(uint32_t rank, Incarnation incarnation);

  struct Loss {
    uint32_t rank = 0;
    std::string why;  // "worker/1 was lost (no heartbeat for 10 s)"
  };
  // Marks members with expired leases as lost, and returns them.
  std::vector<Loss> expire();
  // Marks a member as lost when its process has ended. No effect unless joined.
  void markLost(uint32_t rank);
  // Marks a member as lost when it is awaited in vain. No effect unless awaited.
  void giveUp(uint32_t rank);

  uint32_t workers() const { return static_cast<uint32_t>(members_.size()); }
  const Member& member(uint32_t rank) const { return members_[rank]; }
  bool allFinished() const;
  // Returns "worker/1 (awaited for 3.2 s), worker/2 (lost for 1.0 s)": the members neither joined
  // nor finished; empty when there are none.
  std::string missingText() const;

 private:
  void validateRank(uint32_t rank) const;
  bool isFenced(uint32_t rank, Incarnation incarnation) const;
  void fence(uint32_t rank, Incarnation incarnation);
  [[noreturn]] void refuse(uint32_t rank, bool was_lost) const;
  [[noreturn]] void refuseEarlier(uint32_t rank) const;
  void setState(uint32_t rank, MemberState state);

  const Duration lease_;
  const Clock& clock_;
  std::vector<Member> members_;
  std::vector<std::deque<Incarnation>> fenced_;  // per rank, the newest kFencedMax
};

// Returns "worker/3".
std::string workerName(uint32_t rank);
// Returns "worker/0, worker/2".
std::string workerNames(const std::vector<uint32_t>& ranks);
// Returns "10 s", "0.25 s".
std::string secondsText(Duration d);

}  // namespace dtf::replication
