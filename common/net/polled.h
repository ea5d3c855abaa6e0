#pragma once

// Work that arrives in memory: no descriptor becomes ready for it, so a loop looks for it while it
// polls.

namespace dtf::net {

// Registered with Loop::addPolled().
// Threads: called on the loop's thread. Neither method adds or removes objects of the loop unless
// it returns true.
class Polled {
 public:
  virtual ~Polled() noexcept(false) = default;

  // Does work that has arrived; false: there is none.
  virtual bool poll() = 0;
  // The loop is about to sleep and won't see what arrives, until something else wakes it. Returns
  // true if there was work after all: the loop goes on.
  virtual bool beforeSleep() = 0;
};

}  // namespace dtf::net
