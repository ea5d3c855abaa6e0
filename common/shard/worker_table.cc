#include "common/shard/worker_table.h"

namespace dtf::shard {

WorkerTable::WorkerTable(uint32_t workers, Duration lease, Duration evaluation_max,
                         const Clock& clock)
    : evaluation_max_(evaluation_max),
      clock_(clock),
      membership_(workers, lease, clock),
      notes_(workers) {}

bool WorkerTable::join(uint32_t rank, Incarnation incarnation) {
  if (!membership_.join(rank, incarnation)) return false;
  notes_[rank] = {};
  return true;
}

void WorkerTable::heartbeat(uint32_t rank, Incarnation incarnation, bool evaluates) {
  membership_.heartbeat(rank, incarnation);
  std::optional<TimePoint>& since = notes_[rank].evaluates_since;
  if (!evaluates)
    since.reset();
  else if (!since)
    since = clock_.now();
}

std::optional<Error> WorkerTable::errorOf(uint32_t rank, Incarnation incarnation) {
  try {
    membership_.check(rank, incarnation);
  } catch (const Error& error) {
    return error;
  }
  return notes_[rank].refused;
}

bool WorkerTable::anybodyTrains() const {
  for (uint32_t rank = 0; rank < size(); ++rank)
    if (notes_[rank].has_trained && isPresent(rank)) return true;
  return false;
}

std::optional<uint32_t> WorkerTable::whoEvaluates() const {
  for (uint32_t rank = 0; rank < size(); ++rank) {
    const std::optional<TimePoint>& since = notes_[rank].evaluates_since;
    if (since && clock_.now() - *since < evaluation_max_) return rank;
  }
  return std::nullopt;
}

}  // namespace dtf::shard
