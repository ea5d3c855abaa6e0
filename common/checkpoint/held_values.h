#pragma once

// The record of the values that a ps holds: what it reports to the chief, what goes into a replica
// and into a restored shard.

#include <compare>
#include <cstdint>
#include <vector>

namespace dtf::checkpoint {

// One cut in the history of a job to which all ps can go back. Ordered by epoch, then by step.
struct CutName {
  uint64_t epoch = 0;
  uint64_t step = 0;  // global step
  auto operator<=>(const CutName&) const = default;
};

// The source of an epoch's values.
enum class EpochOrigin : uint8_t {
  kInitialValues = 1,
  kSnapshot = 2,
  kCheckpoint = 3,
};

// The values of a shard, by name.
struct HeldValues {
  uint64_t epoch = 0;  // see replication/epoch.h; 0: there are none
  uint64_t step = 0;   // updates applied to them: the version of the parameters
  EpochOrigin origin = EpochOrigin::kInitialValues;
  CutName origin_cut{};  // unless kInitialValues
};

// The report of one ps to the chief.
struct PsState : HeldValues {
  bool absent = false;  // it has not answered, and the rest is void
  // The epoch of the whole replica that it keeps of the ps before it (before ps/0: the last); 0:
  // none.
  uint64_t replica_epoch = 0;
  std::vector<CutName> snapshots{};  // of its own shard, that it can load
};

}  // namespace dtf::checkpoint
