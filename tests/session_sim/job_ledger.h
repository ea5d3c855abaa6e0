#pragma once

// The jobs that one session puts into its queue, and may take from it.

#include <cstdint>
#include <string>

namespace dtf::sim {

// For one fiber that puts jobs, one step after the other, and one that takes them.
class JobLedger {
 public:
  // Number of the next job to put.
  int32_t next() { return ++put_; }
  // A step has failed that put or took a job: the job may be in the queue, or not.
  void stepFailed() { ++doubtful_; }

  // Checks a job that was taken; returns the fault, empty if there is none.
  std::string taken(int32_t job);
  // Checks the end: the queue is closed and empty.
  std::string ended() const;

 private:
  int32_t put_ = 0, taken_ = 0;  // the newest
  int32_t doubtful_ = 0;         // jobs that may be missing
};

}  // namespace dtf::sim
