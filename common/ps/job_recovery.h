#pragma once

// What a job does when its chief starts or a ps was lost: start, continue, fill the empty ps from
// their replicas, take all back to one cut, or end. Decided in one place, from the words of *all*
// ps, by a pure function; nothing here sends, loads or waits.
//
// Epochs: epoch.h. Each time any ps goes back, all take the next one, and what belongs to another
// is refused. A ps that is filled from a replica has lost nothing and keeps the epoch.
//
//   the ps say                  and                                       then
//   one is absent               -                                         kWait
//   they hold different epochs  the cut that the newest began with        kGoBack to it again,
//                               can still be had everywhere               newest + 1
//   all hold one epoch          -                                         kContinue
//   all empty                   nothing to go back to, nobody knows of a  kStart, the first epoch
//                               step
//   all empty                   nothing to go back to, a chief that has   kEnd: what they held is
//                               trained, or is told of steps              gone
//   all empty                   a common snapshot                         kGoBack, the next epoch
//   all empty                   a checkpoint                              kGoBack, the next epoch
//   some empty, or torn epochs  the others hold initial values, without   kStart: the same values
//                               an update, and the chief trains not yet:  again, on all ps, the
//                                                                         next epoch
//                               one was lost while these were brought
//   some empty                  each empty one has a whole replica        kRefill, the same epoch
//   some empty, or torn epochs  all have a snapshot of one cut            kGoBack to the newest
//                                                                         such
//   some empty, or torn epochs  a checkpoint                              kGoBack to it
//   some empty, or torn epochs  nothing of these                          kEnd: what they held is
//                                                                         torn
//
// A snapshot is preferred to a checkpoint only when it is of a later cut. Whoever ends a job well
// removes its snapshots, and a person who wants to begin anew says so (--fresh), which removes
// them, too: so those that are there are of a job that was cut short.

#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/ps/epoch.h"

namespace dtf::ps {

// One cut in the history of a job to which all ps can go back. Ordered by age: within an epoch
// by step, and what is of a later epoch is later.
struct CutName {
  uint64_t epoch = 0;
  uint64_t step = 0;  // global step
  auto operator<=>(const CutName&) const = default;
};

// From what the values of an epoch came.
enum class EpochOrigin : uint8_t {
  kInitialValues = 1,
  kSnapshot = 2,
  kCheckpoint = 3,
};

// What one ps says of itself.
struct PsWord {
  bool answered = false;  // false: absent, and nothing below counts
  uint64_t epoch = 0;     // of its values; 0: it holds none
  uint64_t step = 0;      // that its values are at
  EpochOrigin origin = EpochOrigin::kInitialValues;
  CutName origin_cut;  // unless kInitialValues
  // Of the shard of the ps before it (ps/0's lies on the last): the epoch of the whole replica that
  // it keeps; 0: none.
  uint64_t replica_epoch = 0;
  std::vector<CutName> snapshots;  // of its own shard, that it can load
};

// What the chief knows beside the words of the ps.
struct ChiefWord {
  std::optional<CutName> checkpoint{};  // the newest that verifies
  uint64_t epoch = 0;                   // that it has trained on; 0: it has just started
  uint64_t step = 0;                    // the last that it knows of
  uint64_t incarnation = 0;             // its own: what it names is told apart by it
  // The last epoch that it has named, whatever became of it: a ps may have been on it that is lost,
  // and workers have answers of it.
  uint64_t named = 0;
  // The last step that earlier processes of the chief have reported, as whoever started this one
  // says; 0: the training had begun. None: this is the first process, or nobody counts.
  std::optional<uint64_t> reached{};
};

enum class RecoveryAction : uint8_t {
  kWait = 1,      // for `ps`, by name
  kStart = 2,     // the chief brings initial values
  kContinue = 3,  // nothing was lost
  kRefill = 4,    // `ps` take their values from the replicas
  kGoBack = 5,    // all ps, to `cut` of `origin`
  kEnd = 6,       // `reason` says why, and what would have helped
};

struct RecoveryDecision {
  RecoveryAction action = RecoveryAction::kWait;
  uint64_t epoch = 0;        // afterwards; kWait and kEnd: 0
  std::vector<uint32_t> ps;  // kWait: absent; kRefill, kEnd: empty; kGoBack: those that lost values
  // kGoBack: to what; kContinue: with what the epoch began.
  EpochOrigin origin = EpochOrigin::kInitialValues;
  CutName cut;
  uint64_t steps_lost = 0;  // kGoBack: from the furthest step that any ps is at
  std::string reason;  // for a person: "ps/1 lost its values: all go back 37 steps to step 4963"
};

// Nullopt: no snapshot is on every ps.
std::optional<CutName> newestCommonSnapshot(std::span<const PsWord> words);

// `words`: one for each ps task, in their order.
RecoveryDecision decideRecovery(std::span<const PsWord> words, const ChiefWord& chief);

}  // namespace dtf::ps
