#pragma once

// An epoch names the line of history that the parameters of a job are on. The chief names one with
// the initial values, and another whenever the ps go back to an earlier cut. A gradient of another
// epoch has no effect. A ps filled from a replica has lost nothing and keeps its epoch.
//
// The upper 24 bits are a number counted from 1; the lower 40 come from the incarnation of the
// chief. So even two chiefs without contact never give one name to two lines. 0: no values.

#include <cstdint>

namespace dtf::replication {

inline constexpr uint32_t kEpochChiefBits = 40;

// Returns the number for logs: the second line of a job is 2.
inline constexpr uint64_t epochNumber(uint64_t epoch) {
  return epoch >> kEpochChiefBits;
}

// Whether `epoch` can be a name. Check every epoch from a peer or a file: then nextEpoch() always
// has a successor to return.
inline constexpr bool validEpoch(uint64_t epoch) {
  constexpr uint64_t kNumberMax = (uint64_t{1} << (64 - kEpochChiefBits)) - 2;
  return epochNumber(epoch) >= 1 && epochNumber(epoch) <= kNumberMax;
}

// Returns the epoch after `epoch`, which is 0 or valid. `chief`: the incarnation of the chief that
// names it.
inline constexpr uint64_t nextEpoch(uint64_t epoch, uint64_t chief) {
  return (epochNumber(epoch) + 1) << kEpochChiefBits |
         (chief & ((uint64_t{1} << kEpochChiefBits) - 1));
}

// The epoch of a job without a chief that names one: a cluster in one process.
inline constexpr uint64_t kFirstEpoch = nextEpoch(0, 0);

}  // namespace dtf::replication
