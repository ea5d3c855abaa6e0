#pragma once

// The workers of a sync job that are gone, why, and until when their return is awaited. A step that
// needs a gradient of such a worker waits for its successor to compute it, or fails.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"

namespace dtf::replication {

//   worker    from -> to        when
//   present   -> awaited        gone(), with patience: it was lost, and may be started again
//   present   -> given up       gone(), without: it has finished early, or returns aren't awaited
//   awaited   -> given up       its time has passed
//   any       -> present        joined(), given up before or never gone
//   awaited   -> returning      joined(): its successor reads its data, and can't contribute yet
//   returning -> present        arrived(), or its time has passed
//
// Owns: the table.
// Borrows: `clock`.
// Threads: loop-thread only.
// Blocks: never.
class GoneWorkers {
 public:
  // Whether the step under way has all it needs of a worker, so that the worker isn't missed.
  using HasContributed = std::function<bool(uint32_t rank)>;

  // `needed`: how many workers' gradients a step takes, at most `workers`.
  GoneWorkers(uint32_t workers, uint32_t needed, const Clock& clock);

  void joined(uint32_t rank);
  void arrived(uint32_t rank);  // it trains: its first pull or push
  // `why` reads "worker/1 was lost (no heartbeat for 10 s)".
  void gone(uint32_t rank, const std::string& why, Duration patience);

  // Returns the lost workers without which the step can't be made, and which may still return.
  std::vector<uint32_t> awaited(const HasContributed& has_contributed) const {
    return awaited(has_contributed, needed_);
  }
  // The same for a step that takes another number of workers.
  std::vector<uint32_t> awaited(const HasContributed& has_contributed, size_t needed) const;
  // Returns why the return of `rank` is no longer awaited; nullopt: it is present or awaited.
  std::optional<std::string> givenUp(uint32_t rank) const;

  // Returns why a call of `rank` waits in vain: too few will contribute. A loss before `rank`
  // joined doesn't count: the whole job is starting again, and the return of the lost worker is
  // awaited.
  std::optional<std::string> hopelessFor(uint32_t rank,
                                         const HasContributed& has_contributed) const {
    return hopelessFor(rank, has_contributed, needed_);
  }
  // The same for a step that takes another number of workers.
  std::optional<std::string> hopelessFor(uint32_t rank, const HasContributed& has_contributed,
                                         size_t needed) const;

 private:
  struct Worker {
    uint64_t joined_at = 0;  // on the event counter
    uint64_t gone_at = 0;    // ditto; 0: present
    bool returning = false;
    std::string why;
    TimePoint since;      // it is gone
    TimePoint return_by;  // awaited until then
  };

  const uint32_t needed_;
  const Clock& clock_;
  std::vector<Worker> workers_;
  uint64_t events_ = 0;  // joins and losses, to order them
};

}  // namespace dtf::replication
