#include "common/train/stop_request.h"

#include "common/base/check.h"

namespace dtf::train {

// With the lock, so that no wait begins between the store and the call.
void StopRequest::ask() {
  {
    MutexLock lock(mutex_);
    is_set_ = is_asked_ = true;
    if (is_recovering_) *gives_up_ = true;
  }
  changed_.notifyAll();
}

void StopRequest::endRun() {
  {
    MutexLock lock(mutex_);
    is_set_ = true;
  }
  changed_.notifyAll();
}

void StopRequest::wait(const Clock& clock, TimePoint until) {
  MutexLock lock(mutex_);
  while (!is_set_ && clock.now() < until) changed_.waitUntil(mutex_, until);
}

StopRequest::Recovering::Recovering(StopRequest& stop) : stop_(stop) {
  MutexLock lock(stop_.mutex_);
  DTF_CHECK(!stop_.is_recovering_);
  stop_.is_recovering_ = true;
  *stop_.gives_up_ = stop_.is_asked_;
}

StopRequest::Recovering::~Recovering() {
  MutexLock lock(stop_.mutex_);
  stop_.is_recovering_ = false;
  *stop_.gives_up_ = false;
}

}  // namespace dtf::train
