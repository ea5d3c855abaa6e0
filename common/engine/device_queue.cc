#include "common/engine/device_queue.h"

#include <utility>

#include "common/base/check.h"

namespace dtf::engine {

DeviceQueue::DeviceQueue(std::string name) : thread_(std::move(name), [this] { work(); }) {}

DeviceQueue::~DeviceQueue() {
  {
    MutexLock lock(mutex_);
    ending_ = true;
  }
  changed_.notifyAll();
  thread_.join();
}

void DeviceQueue::post(Job job) {
  DTF_CHECK(job != nullptr);
  {
    MutexLock lock(mutex_);
    DTF_CHECK(!ending_);
    jobs_.push_back(std::move(job));
  }
  changed_.notifyAll();
}

void DeviceQueue::work() {
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

}  // namespace dtf::engine
