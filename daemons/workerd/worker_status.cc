#include "daemons/workerd/worker_status.h"

#include <utility>

#include "common/base/check.h"

namespace dtf::workerd {

WorkerStatus::Training::Training(WorkerStatus& status, Stopper stopper) : status_(status) {
  MutexLock lock(status_.mutex_);
  DTF_CHECK(status_.phase_ == WorkerPhase::kStarting);
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

WorkerStatus::Telling::Telling(WorkerStatus& status, Teller teller) : status_(status) {
  MutexLock lock(status_.telling_mutex_);
  DTF_CHECK(teller != nullptr && status_.teller_ == nullptr);
  status_.teller_ = std::move(teller);
}

WorkerStatus::Telling::~Telling() {
  MutexLock lock(status_.telling_mutex_);
  status_.teller_ = nullptr;
}

// The lock is held while the teller is called: so what it refers to lives until it has returned.
void WorkerStatus::tellOthers(const Error& reason) {
  MutexLock lock(telling_mutex_);
  if (teller_) teller_(reason);
}

WorkerPhase WorkerStatus::phase() const {
  MutexLock lock(mutex_);
  return phase_;
}

}  // namespace dtf::workerd
