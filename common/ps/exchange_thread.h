#pragma once

// Where an exchange goes on while its worker computes: the next batch with replication.overlap,
// else the rest of the same gradient.

#include <cstdint>
#include <exception>
#include <functional>
#include <optional>

#include "common/base/mutex.h"
#include "common/base/thread.h"
#include "common/ps/parameter_client.h"

namespace dtf::ps {

// Owns: the thread.
// Threads: thread-compatible: one calls start() and finish() in turns.
// Blocks: finish(), until the exchange has ended, which has its own deadline; so does the
// destructor.
// Errors: those of the exchange, from finish().
class ExchangeThread {
 public:
  using Exchange = std::function<StepState(uint64_t step, uint32_t batch, float loss)>;
  // `exchange` is called on the thread.
  explicit ExchangeThread(Exchange exchange);
  ~ExchangeThread();
  ExchangeThread(const ExchangeThread&) = delete;
  ExchangeThread& operator=(const ExchangeThread&) = delete;

  // None is under way. Allocates nothing.
  void start(uint64_t step, uint32_t batch, float loss);
  // Of the one that was started.
  StepState finish();

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
  std::optional<Asked> asked_ DTF_GUARDED_BY(mutex_);       // until the thread has taken it
  std::optional<StepState> answer_ DTF_GUARDED_BY(mutex_);  // until finish() has
  std::exception_ptr failure_ DTF_GUARDED_BY(mutex_);       // in its place
  bool under_way_ = false;  // the caller's own: started, and not finished
  bool ends_ DTF_GUARDED_BY(mutex_) = false;
  Thread thread_;  // last: it uses all of these
};

}  // namespace dtf::ps
