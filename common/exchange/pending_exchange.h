#pragma once

// An exchange between its begin and its finish, as every client has one at most.

#include <cstdint>
#include <memory>
#include <optional>

#include "common/exchange/exchange_thread.h"

namespace dtf::exchange {

// Makes an exchange beside the caller, on a thread, or in finish().
// Owns: the thread.
// Threads: thread-compatible: one caller calls begin() and finish() in turns.
// Blocks: finish(), drop() and endThread(), until the exchange has ended, which has its own
// deadline.
// Errors: finish() throws the errors of the exchange.
class PendingExchange {
 public:
  explicit PendingExchange(ExchangeThread::Exchange exchange);

  // Starts the thread, on which an exchange can be made from now on.
  void startThread();
  bool hasThread() const { return thread_ != nullptr; }
  // Waits for the exchange on the thread, if there is one, and ends the thread.
  void endThread() { thread_ = nullptr; }

  // Begins an exchange; none may be begun. `beside`: on the thread, at once. Allocates nothing.
  void begin(uint64_t step, uint32_t batch, float loss, bool beside);
  // Whether the exchange that was begun is on the thread.
  bool isBeside() const { return begun_ && begun_->beside; }
  // Makes the exchange that was begun, or waits for it, and returns its answer.
  replication::StepState finish();
  // Ends the exchange that was begun without an answer: waits for it if it is on the thread.
  // Errors: as finish().
  void drop();

 private:
  struct Begun {
    uint64_t step = 0;
    uint32_t batch = 0;
    float loss = 0;
    bool beside = false;
  };
  Begun take();

  const ExchangeThread::Exchange exchange_;
  std::optional<Begun> begun_;
  std::unique_ptr<ExchangeThread> thread_;  // may be null; last: it uses exchange_
};

}  // namespace dtf::exchange
