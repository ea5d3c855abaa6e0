#include "daemons/workerd/worker_status.h"

#include <utility>

#include "common/base/check.h"

namespace dtf::workerd {

WorkerStatus::Training::Training(WorkerStatus& status, Stopper stopper) : status_(status) {
  {
    MutexLock lock(status_.mutex_);
    DTF_CHECK(status_.phase_ == WorkerPhase::kStarting);
    status_.phase_ = WorkerPhase::kTraining;
    status_.saves_ = stopper != nullptr;
  }
  // After it: who is asked in between is told that it is saved, and asks again.
  status_.stopper_.set(std::move(stopper));
}

WorkerStatus::Training::~Training() {
  {
    MutexLock lock(status_.mutex_);
    DTF_CHECK(status_.phase_ == WorkerPhase::kTraining);
    status_.phase_ = WorkerPhase::kFinishing;
  }
  status_.stopper_.revoke();
}

bool WorkerStatus::askToEnd(Refused refused) {
  bool saves = false;
  {
    MutexLock lock(mutex_);
    saves = saves_;
  }
  stopper_.call(std::move(refused));
  return saves;
}

WorkerStatus::Telling::Telling(WorkerStatus& status, Teller teller) : status_(status) {
  DTF_CHECK(teller != nullptr);
  status_.teller_.set(std::move(teller));
}

WorkerStatus::Telling::~Telling() {
  status_.teller_.revoke();
}

void WorkerStatus::tellOthers(const Error& reason) {
  teller_.call(reason);
}

WorkerPhase WorkerStatus::phase() const {
  MutexLock lock(mutex_);
  return phase_;
}

}  // namespace dtf::workerd
