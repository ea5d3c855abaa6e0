#pragma once

// What one session puts into its queue, and may find in it.

#include <cstdint>
#include <string>

namespace dtf::sim {

// Of one who puts in, one step after the other, and one who takes.
class JobLedger {
 public:
  // The number of the next job, which is to be put in.
  int32_t next() { return ++put_; }
  // A step has failed that put in or took one: the queue may have it, or not.
  void stepFailed() { ++doubtful_; }

  // What is wrong with what was taken; empty: nothing.
  std::string taken(int32_t job);
  // When the queue is closed and empty.
  std::string ended() const;

 private:
  int32_t put_ = 0, taken_ = 0;  // the newest
  int32_t doubtful_ = 0;         // jobs that may be missing
};

}  // namespace dtf::sim
