#pragma once

// A thread that runs an exchange while its worker computes: the next batch with
// replication.overlap, otherwise the rest of the same gradient.

#include <cstdint>
#include <exception>
#include <functional>
#include <optional>

#include "common/base/mutex.h"
#include "common/base/thread.h"
#include "common/replication/step_state.h"

namespace dtf::exchange {

// Owns: the thread.
// Threads: thread-compatible: one caller calls start() and finish() in turns.
// Blocks: finish() and the destructor, until the exchange has ended, which has its own deadline.
// Errors: finish() throws the errors of the exchange.
class ExchangeThread {
 public:
  using Exchange = std::function<replication::StepState(uint64_t step, uint32_t batch, float loss)>;
  // `exchange` is called on the thread.
  explicit ExchangeThread(Exchange exchange);
  ~ExchangeThread();
  ExchangeThread(const ExchangeThread&) = delete;
  ExchangeThread& operator=(const ExchangeThread&) = delete;

  // Starts an exchange; none may be under way. Allocates nothing.
  void start(uint64_t step, uint32_t batch, float loss);
  // Waits for the exchange that was started, and returns its answer.
  replication::StepState finish();

 private:
  struct Asked {
    uint64_t step = 0;
    uint32_t batch = 0;
    float loss = 0;
  };
  void work();
  std::optional<Asked> awaitAsked();

  const Exchange exchange_;
  Mutex mutex_;
  CondVar changed_;
  std::optional<Asked> asked_ DTF_GUARDED_BY(mutex_);  // until the thread has taken it
  std::optional<replication::StepState> answer_ DTF_GUARDED_BY(mutex_);  // until finish() has
  std::exception_ptr failure_ DTF_GUARDED_BY(mutex_);                    // in place of answer_
  bool under_way_ = false;  // started, and not finished; only the caller uses it
  bool ends_ DTF_GUARDED_BY(mutex_) = false;
  Thread thread_;  // last: it uses all of these
};

}  // namespace dtf::exchange
