#pragma once

// Decides how a job goes on when its chief starts or a ps was lost: start, continue, refill the
// empty ps from their replicas, take all back to one cut, or end. One pure function decides, from
// the reports of *all* ps; nothing here sends, loads or waits.
//
// Epochs (epoch.h): each time a ps goes back, all take the next epoch, and gradients of another
// have no effect. A ps filled from a replica has lost nothing and keeps the epoch.
//
//   the ps report              and                                       then
//   one is absent               -                                         kWait
//   they hold different epochs  the cut that the newest began with        kGoBack to it again,
//                               can still be had everywhere               newest + 1
//   all hold one epoch          -                                         kContinue
//   all empty                   nothing to go back to, no step is known   kStart, the first epoch
//   all empty                   nothing to go back to, the chief has      kEnd: the values are lost
//                               trained, or steps were reported
//   all empty                   a common snapshot                         kGoBack, the next epoch
//   all empty                   a checkpoint                              kGoBack, the next epoch
//   some empty, or torn epochs  the others hold initial values, without   kStart: the same values
//                               an update, and the chief trains not yet:  again, on all ps, the
//                               one was lost while these were brought     next epoch
//   some empty                  each empty one has a whole replica        kRefill, the same epoch
//   some empty, or torn epochs  all have a snapshot of one cut            kGoBack to the newest
//                                                                         such
//   some empty, or torn epochs  a checkpoint                              kGoBack to it
//   some empty, or torn epochs  none of these                             kEnd: no common values
//
// A snapshot is preferred to a checkpoint only when its cut is later. A job that ends well removes
// its snapshots, and so does a start with --fresh. So any snapshot that exists is of a job that was
// cut short.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/checkpoint/held_values.h"
#include "common/replication/epoch.h"

namespace dtf::replication {

using checkpoint::CutName;
using checkpoint::EpochOrigin;
using checkpoint::PsState;

// The chief's own knowledge.
struct ChiefState {
  std::optional<CutName> checkpoint{};  // the newest that verifies
  uint64_t epoch = 0;                   // that it has trained on; 0: it has just started
  uint64_t step = 0;                    // the last that it knows of
  uint64_t incarnation = 0;             // its own; part of the epochs that it names
  // The last epoch that it named, even if no ps reports it: a lost ps may have entered that epoch
  // and answered workers.
  uint64_t named = 0;
  // The last step that earlier processes of the chief have reported, passed by the launcher of this
  // one; 0: training had begun. nullopt: this is the first process, or attempts aren't counted.
  std::optional<uint64_t> reached{};
  ShardHosts hosts{};  // the tasks that host the shards, for names in `reason`
};

enum class RecoveryAction : uint8_t {
  kWait = 1,      // for `ps`, by name
  kStart = 2,     // the chief brings initial values
  kContinue = 3,  // nothing was lost
  kRefill = 4,    // `ps` take their values from the replicas
  kGoBack = 5,    // all ps, to `cut` of `origin`
  kEnd = 6,       // `reason` has the cause and a remedy
};

struct RecoveryDecision {
  RecoveryAction action = RecoveryAction::kWait;
  uint64_t epoch = 0;        // afterwards; kWait and kEnd: 0
  std::vector<uint32_t> ps;  // kWait: absent; kRefill, kEnd: empty; kGoBack: without their values
  // kGoBack: the values to restore; kContinue: the values that the epoch began with.
  EpochOrigin origin = EpochOrigin::kInitialValues;
  CutName cut;
  uint64_t steps_lost = 0;  // kGoBack: counted from the furthest step that is known
  std::string reason;  // for a person: "ps/1 lost its values: all go back 37 steps to step 4963"
};

// Returns the newest snapshot that is on every ps; nullopt: there is none.
std::optional<CutName> newestCommonSnapshot(std::span<const PsState> words);

// Decides from `words`, one for each ps task, in their order.
RecoveryDecision decideRecovery(std::span<const PsState> words, const ChiefState& chief);

}  // namespace dtf::replication
