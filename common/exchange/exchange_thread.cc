#include "common/exchange/exchange_thread.h"

#include <utility>

#include "common/base/check.h"
#include "common/base/trace.h"

namespace dtf::exchange {

ExchangeThread::ExchangeThread(Exchange exchange)
    : exchange_(std::move(exchange)), thread_("dtf-exchange", [this] { work(); }) {
  DTF_CHECK(exchange_ != nullptr);
}

ExchangeThread::~ExchangeThread() {
  {
    const MutexLock lock(mutex_);
    ends_ = true;
  }
  changed_.notifyAll();
  thread_.join();
}

void ExchangeThread::start(uint64_t step, uint32_t batch, float loss) {
  DTF_CHECK(!std::exchange(under_way_, true));
  {
    const MutexLock lock(mutex_);
    asked_ = Asked{step, batch, loss};
  }
  changed_.notifyAll();
}

replication::StepState ExchangeThread::finish() {
  DTF_CHECK(std::exchange(under_way_, false));
  const MutexLock lock(mutex_);
  while (!answer_ && failure_ == nullptr) changed_.wait(mutex_);
  if (failure_ != nullptr) std::rethrow_exception(std::exchange(failure_, nullptr));
  return *std::exchange(answer_, std::nullopt);
}

std::optional<ExchangeThread::Asked> ExchangeThread::awaitAsked() {
  const MutexLock lock(mutex_);
  while (!asked_ && !ends_) changed_.wait(mutex_);
  return std::exchange(asked_, std::nullopt);
}

// Runs a requested exchange even if the end was requested meanwhile: half an exchange is none.
void ExchangeThread::work() {
  while (const std::optional<Asked> asked = awaitAsked()) {
    std::optional<replication::StepState> answer;
    std::exception_ptr failure;
    try {
      const trace::Span span("push, wait, receive");
      answer = exchange_(asked->step, asked->batch, asked->loss);
    } catch (...) {
      failure = std::current_exception();
    }
    const MutexLock lock(mutex_);
    answer_ = answer;
    failure_ = std::move(failure);  // the caller's alone: its last owner destroys it
    changed_.notifyAll();
  }
}

}  // namespace dtf::exchange
