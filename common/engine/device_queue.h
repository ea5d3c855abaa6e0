#pragma once

// The thread of one device: programs run on it one after the other, whichever step they belong to.

#include <deque>
#include <functional>
#include <string>

#include "common/base/mutex.h"
#include "common/base/thread.h"

namespace dtf::engine {

// Owns: its thread.
// Threads: thread-safe.
// Blocks: post() never; runHere(), while the device computes for somebody else; the destructor, until
// everything that was posted has run.
// Errors: a job must not throw.
class DeviceQueue {
 public:
  using Job = std::function<void()>;

  explicit DeviceQueue(std::string name);  // the thread's
  ~DeviceQueue();
  DeviceQueue(const DeviceQueue&) = delete;
  DeviceQueue& operator=(const DeviceQueue&) = delete;

  // Jobs run in the order in which they were posted.
  void post(Job job);

  // In the calling thread: for a step that is one program, handing over would cost more than it does.
  template <class F>
  void runHere(const F& job) {
    MutexLock lock(device_);
    job();
  }

 private:
  void work();

  Mutex device_;  // held while a job runs
  Mutex mutex_;
  CondVar changed_;
  std::deque<Job> jobs_ DTF_GUARDED_BY(mutex_);
  bool ending_ DTF_GUARDED_BY(mutex_) = false;
  Thread thread_;  // last: it uses the others
};

}  // namespace dtf::engine
