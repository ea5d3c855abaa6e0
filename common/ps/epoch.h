#pragma once

// Epoch: the line of history that the parameters of a job are on. The chief names one with the
// initial values, and another whenever the ps go back to an earlier cut; what was computed from
// parameters of another epoch is refused. A ps that is filled from a replica has lost nothing, and
// keeps its epoch.
//
// 24 bits of number, counted from 1, then 40 of the chief's process, of when it started: after two
// chiefs that knew nothing of each other have gone back, no two lines have one name. 0: no values.

#include <cstdint>

namespace dtf::ps {

inline constexpr uint32_t kEpochChiefBits = 40;

// For people: the second line of a job is 2.
inline constexpr uint64_t epochNumber(uint64_t epoch) {
  return epoch >> kEpochChiefBits;
}

// Whether `epoch` can be the name of a line of history. What a peer or a file says is to be asked
// that; so there is always a next one.
inline constexpr bool validEpoch(uint64_t epoch) {
  constexpr uint64_t kNumberMax = (uint64_t{1} << (64 - kEpochChiefBits)) - 2;
  return epochNumber(epoch) >= 1 && epochNumber(epoch) <= kNumberMax;
}

// The one after `epoch`, which is 0 or valid. `chief`: the incarnation of who names it, whose lower
// bits it takes.
inline constexpr uint64_t nextEpoch(uint64_t epoch, uint64_t chief) {
  return (epochNumber(epoch) + 1) << kEpochChiefBits |
         (chief & ((uint64_t{1} << kEpochChiefBits) - 1));
}

// Of a job that nobody names an epoch for: a cluster in one process.
inline constexpr uint64_t kFirstEpoch = nextEpoch(0, 0);

}  // namespace dtf::ps
