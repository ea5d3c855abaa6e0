#pragma once

// Named barriers: all workers of the job arrive before any leaves. A barrier doesn't wait for a
// worker that has finished or is lost; it does again once a lost one returns.

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/clock.h"
#include "common/cluster/spec.h"
#include "common/replication/answer.h"
#include "common/replication/waiting_calls.h"

namespace dtf::replication {

inline constexpr size_t kBarriersMax = 4096;  // names per job
inline constexpr size_t kBarrierNameBytesMax = 256;

// The barriers of a job: kStartBarrier once; trainedBarrier() when training is done; then
// savedBarrier() when the chief has saved the end. A job that goes back in between trains on, and
// meets at the barriers of the next epoch. Their names contain the epoch, so a restarted worker
// finds the others.
inline constexpr std::string_view kStartBarrier = "start";
std::string trainedBarrier(uint64_t epoch);  // of the parameters at the end of the training
std::string savedBarrier(uint64_t epoch);
// The barrier of a job that pauses. All workers leave together, so that a restarted worker meets no
// process of this run.
inline constexpr std::string_view kPausedBarrier = "paused";
// Returns how long a worker waits there for the others, and the chief for the disk.
Duration barrierTimeout(std::string_view name, const cluster::Timeouts& timeouts);

enum class Arrival {
  kFirst,
  kPassedBefore,  // an earlier process of this ps had opened the barrier: all had arrived
};

// A barrier opens once; a worker that arrives later (a restarted one) passes at once. The barriers
// of an epoch that the job has left are open: the workers at them are needed again.
// Owns: callbacks that wait.
// Threads: loop-thread only.
// Blocks: never. Errors, through the callback: kUnavailable with the names of the missing workers;
// kBadConfig for a bad name or too many names; kUnavailable for a caller that a newer process of
// its rank replaced.
class Barriers {
 public:
  Barriers(uint32_t workers, OutwardCalls& calls, const Clock& clock);

  void arrive(std::string_view name, uint32_t rank, Arrival arrival, Duration timeout,
              WaitCallback callback);
  // Notes that `rank` finished or was lost: no barrier waits for it any more.
  void left(uint32_t rank);
  // Notes a new process of a lost worker: barriers wait for it again.
  void returned(uint32_t rank) { absent_.erase(rank); }
  // Notes the epoch of this ps's values, and opens the barriers of earlier epochs.
  void beginEpoch(uint64_t epoch);
  // Answers waits that have timed out.
  void tick();
  uint32_t waiting() const;

 private:
  struct Barrier {
    Barrier(OutwardCalls& calls, const Clock& clock) : waiting(calls, clock) {}
    bool open = false;
    std::set<uint32_t> arrived;
    WaitingCalls<WaitAnswer> waiting;
  };
  void openIfComplete(Barrier& barrier);
  void open(Barrier& barrier);
  bool isLeft(std::string_view name) const;
  std::vector<uint32_t> missingAt(const Barrier& barrier) const;

  const uint32_t workers_;
  OutwardCalls& calls_;
  const Clock& clock_;
  std::set<uint32_t> absent_;
  uint64_t epoch_number_ = 0;  // of the values; 0: there are none
  std::map<std::string, Barrier, std::less<>> barriers_;
};

}  // namespace dtf::replication
