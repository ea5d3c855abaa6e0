#include "daemons/workerd/worker_status.h"

#include <fmt/format.h>

#include <utility>

#include "common/base/check.h"
#include "common/base/service_manager.h"

namespace dtf::workerd {

WorkerStatus::Training::Training(WorkerStatus& status, Stopper stopper) : status_(status) {
  {
    MutexLock lock(status_.mutex_);
    DTF_CHECK(status_.phase_ != WorkerPhase::kTraining);
    status_.phase_ = WorkerPhase::kTraining;
    status_.saves_ = stopper != nullptr;
  }
  const MutexLock lock(status_.asking_);
  status_.stopper_.set(std::move(stopper));
  if (auto refused = std::exchange(status_.unasked_, std::nullopt))
    status_.stopper_.call(*std::move(refused));
}

WorkerStatus::Training::~Training() {
  {
    MutexLock lock(status_.mutex_);
    DTF_CHECK(status_.phase_ == WorkerPhase::kTraining);
    status_.phase_ = WorkerPhase::kFinishing;
  }
  status_.stopper_.revoke();
}

void WorkerStatus::hasValues() {
  const MutexLock lock(mutex_);
  DTF_CHECK(phase_ == WorkerPhase::kStarting);
  saves_ = true;
}

bool WorkerStatus::askToEnd(Refused refused) {
  bool saves = false;
  {
    MutexLock lock(mutex_);
    saves = saves_;
  }
  const MutexLock lock(asking_);
  if (!stopper_.call(refused) && saves) unasked_ = std::move(refused);
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

WorkerStatus::Asking::Asking(WorkerStatus& status, Asker asker) : status_(status) {
  DTF_CHECK(asker != nullptr);
  status_.asker_.set(std::move(asker));
}

WorkerStatus::Asking::~Asking() {
  status_.asker_.revoke();
}

void WorkerStatus::askHeartbeats(std::function<void()> answer) {
  DTF_CHECK(answer != nullptr);
  if (!asker_.call(answer)) answer();
}

void WorkerStatus::awaits(std::string what) {
  DTF_CHECK(!what.empty());
  const MutexLock lock(mutex_);
  awaited_ = std::move(what);
}

void WorkerStatus::goesOn() {
  const MutexLock lock(mutex_);
  awaited_.clear();
}

void WorkerStatus::hasResult() {
  {
    const MutexLock lock(mutex_);
    has_result_ = true;
  }
  if (const ServiceManager* manager = serviceManager()) manager->tell(statusWord(text()));
}

std::string WorkerStatus::text() const {
  const MutexLock lock(mutex_);
  const uint64_t step = global_step;
  if (has_result_) return resultStatus(step);
  std::string text = phase_ == WorkerPhase::kStarting ? "starting" : "training";
  if (step > 0) text = fmt::format("step {} of {}, loss {:.4g}", step, steps.load(), loss.load());
  if (!awaited_.empty()) return text + ", waiting for " + awaited_;
  if (evaluates) return text + ", evaluating";
  return phase_ == WorkerPhase::kFinishing ? text + ", finishing" : text;
}

std::string WorkerStatus::whyNotReady() const {
  const MutexLock lock(mutex_);
  if (!awaited_.empty()) return "it waits for " + awaited_;
  return phase_ == WorkerPhase::kStarting ? "it starts" : "";
}

void WorkerStatus::reports(const Done& done) {
  const MutexLock lock(mutex_);
  done_ = done;
}

WorkerStatus::Done WorkerStatus::done() const {
  const MutexLock lock(mutex_);
  return done_;
}

WorkerPhase WorkerStatus::phase() const {
  MutexLock lock(mutex_);
  return phase_;
}

}  // namespace dtf::workerd
