#include "daemons/workerd/worker_status.h"

#include <utility>

namespace dtf::workerd {

WorkerStatus::Training::Training(WorkerStatus& status, Stopper stopper) : status_(status) {
  MutexLock lock(status_.mutex_);
  status_.phase_ = WorkerPhase::kTraining;
  status_.saves_ = stopper != nullptr;
  status_.stopper_ = std::move(stopper);
}

WorkerStatus::Training::~Training() {
  MutexLock lock(status_.mutex_);
  status_.phase_ = WorkerPhase::kFinishing;
  status_.stopper_ = nullptr;
}

// The lock is held while the stopper is called: so what it refers to lives until it has returned.
bool WorkerStatus::askToEnd(Refused refused) {
  MutexLock lock(mutex_);
  if (stopper_) stopper_(std::move(refused));
  return saves_;
}

WorkerPhase WorkerStatus::phase() const {
  MutexLock lock(mutex_);
  return phase_;
}

}  // namespace dtf::workerd
