#include "common/exchange/pending_exchange.h"

#include <utility>

#include "common/base/check.h"

namespace dtf::exchange {

PendingExchange::PendingExchange(ExchangeThread::Exchange exchange)
    : exchange_(std::move(exchange)) {
  DTF_CHECK(exchange_ != nullptr);
}

void PendingExchange::startThread() {
  DTF_CHECK(thread_ == nullptr);
  thread_ = std::make_unique<ExchangeThread>(exchange_);
}

void PendingExchange::begin(uint64_t step, uint32_t batch, float loss, bool beside) {
  DTF_CHECK(!begun_ && (!beside || hasThread()));
  begun_ = Begun{step, batch, loss, beside};
  if (beside) thread_->start(step, batch, loss);
}

PendingExchange::Begun PendingExchange::take() {
  DTF_CHECK(begun_.has_value());
  return *std::exchange(begun_, std::nullopt);
}

replication::StepState PendingExchange::finish() {
  const Begun begun = take();
  return begun.beside ? thread_->finish() : exchange_(begun.step, begun.batch, begun.loss);
}

void PendingExchange::drop() {
  if (take().beside) thread_->finish();
}

}  // namespace dtf::exchange
