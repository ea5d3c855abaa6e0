#pragma once

// The queue of one device's programs: they run one after the other, for all steps.

#include <deque>
#include <functional>
#include <memory>
#include <string>

#include "common/base/mutex.h"
#include "common/base/thread.h"

namespace dtf::engine {

// Threads: thread-safe.
// Blocks: post() never; runHere(), while the device computes for another caller; the destructor,
// until all posted jobs have run.
// Errors: a job must not throw.
class DeviceQueue {
 public:
  using Job = std::function<void()>;

  DeviceQueue() = default;
  virtual ~DeviceQueue() = default;
  DeviceQueue(const DeviceQueue&) = delete;
  DeviceQueue& operator=(const DeviceQueue&) = delete;

  // Runs jobs in the order of their posts, never within this call.
  virtual void post(Job job) = 0;

  // Runs a job in the calling thread: for a step of a single program, a hand-over would cost more
  // than the job.
  template <class F>
  void runHere(const F& job) {
    MutexLock lock(device_);
    job();
  }

 private:
  Mutex device_;  // held while a job runs
};

// Owns: its thread.
class DeviceThread final : public DeviceQueue {
 public:
  explicit DeviceThread(std::string name);  // the thread's name
  ~DeviceThread() override;

  void post(Job job) override;

 private:
  void work();

  Mutex mutex_;
  CondVar changed_;
  std::deque<Job> jobs_ DTF_GUARDED_BY(mutex_);
  bool ending_ DTF_GUARDED_BY(mutex_) = false;
  Thread thread_;  // last: it uses the others
};

// Makes the queue of a device, or of a thread that serves all: here a thread, in a simulation
// events of its clock. `name`: the thread's name.
using MakeDeviceQueue = std::function<std::unique_ptr<DeviceQueue>(std::string name)>;
std::unique_ptr<DeviceQueue> makeDeviceThread(std::string name);

}  // namespace dtf::engine
