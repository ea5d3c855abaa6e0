#pragma once

// A resource at which an act of a step may wait without a thread: a queue, or the barrier of
// synchronous replicas.

#include <cstdint>

namespace dtf::engine {

// Threads: thread-safe.
// Blocks: never.
class Awaited {
 public:
  // Identifies an act that waits, or waited: its turn may come at any time. 0: it has ended.
  using Wait = uint64_t;

  // Cancels a wait: its callback isn't called. No effect if its turn has come.
  virtual void cancel(Wait wait) = 0;

 protected:
  ~Awaited() = default;
};

}  // namespace dtf::engine
