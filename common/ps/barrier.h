#pragma once

// Named barriers: all workers that are in the job arrive before any leaves. One that has finished,
// or was lost, is not waited for; a lost one that comes back is again.

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "common/base/clock.h"
#include "common/cluster/spec.h"
#include "common/ps/answer.h"

namespace dtf::ps {

inline constexpr size_t kBarriersMax = 4096;  // names per job
inline constexpr size_t kBarrierNameBytesMax = 256;

// The barriers of a job: kStart once; when training is done kTrained, then kSaved when the chief
// has saved the end. A job that goes back in between trains on, and meets at those of the next
// epoch: by that name a worker that was started again finds the others.
inline constexpr std::string_view kStartBarrier = "start";
std::string trainedBarrier(uint64_t epoch);  // of the parameters at the end of the training
std::string savedBarrier(uint64_t epoch);
// Of a job that is left to go on later. Who is started again is to find nobody of this turn, so all
// go together.
inline constexpr std::string_view kPausedBarrier = "paused";
// How long a worker waits there for the others, and the chief for the disk.
Duration barrierTimeout(std::string_view name, const cluster::Timeouts& timeouts);

enum class Arrival {
  kFirst,
  kPassedBefore,  // of a worker that an earlier process of this ps has let through: all had arrived
};

// A barrier opens once: whoever arrives at an open one (a restarted worker) passes at once. Those
// of an epoch that the job has left are open: whoever waits there is needed again.
// Owns: callbacks that wait.
// Threads: loop-thread only.
// Blocks: never. Errors, through the callback: kUnavailable naming who is missing; kBadConfig for a
// bad name or too many names; kUnavailable for a caller that a newer process of its rank replaced.
class Barriers {
 public:
  Barriers(uint32_t workers, OutwardCalls& calls, const Clock& clock);

  void arrive(std::string_view name, uint32_t rank, Arrival arrival, Duration timeout,
              WaitCallback callback);
  // No barrier waits for `rank` any more: it has finished, or was lost.
  void left(uint32_t rank);
  // A new process of a lost worker: barriers wait for it again.
  void returned(uint32_t rank) { absent_.erase(rank); }
  // The values of this ps are of `epoch` now.
  void beginEpoch(uint64_t epoch);
  // Answers waits whose time is up.
  void tick();
  uint32_t waiting() const;

 private:
  struct Waiter {
    WaitCallback callback;
    TimePoint deadline;
    Duration timeout;
  };
  struct Barrier {
    bool open = false;
    std::set<uint32_t> arrived;
    std::map<uint32_t, Waiter> waiters;
  };
  void openIfComplete(Barrier& barrier);
  void open(Barrier& barrier);
  bool isLeft(std::string_view name) const;
  void answer(Waiter& waiter, WaitAnswer what);

  const uint32_t workers_;
  OutwardCalls& calls_;
  const Clock& clock_;
  std::set<uint32_t> absent_;
  uint64_t epoch_number_ = 0;  // of the values; 0: there are none
  std::map<std::string, Barrier, std::less<>> barriers_;
};

}  // namespace dtf::ps
