#include "common/engine/device_queue.h"

#include <utility>

#include "common/base/check.h"

namespace dtf::engine {

DeviceThread::DeviceThread(std::string name) : thread_(std::move(name), [this] { work(); }) {}

DeviceThread::~DeviceThread() {
  {
    MutexLock lock(mutex_);
    ending_ = true;
  }
  changed_.notifyAll();
  thread_.join();
}

void DeviceThread::post(Job job) {
  DTF_CHECK(job != nullptr);
  {
    MutexLock lock(mutex_);
    DTF_CHECK(!ending_);
    jobs_.push_back(std::move(job));
  }
  changed_.notifyAll();
}

void DeviceThread::work() {
  for (;;) {
    Job job;
    {
      MutexLock lock(mutex_);
      while (jobs_.empty() && !ending_) changed_.wait(mutex_);
      if (jobs_.empty()) return;
      job = std::move(jobs_.front());
      jobs_.pop_front();
    }
    runHere(job);
  }
}

std::unique_ptr<DeviceQueue> makeDeviceThread(std::string name) {
  return std::make_unique<DeviceThread>(std::move(name));
}

}  // namespace dtf::engine
