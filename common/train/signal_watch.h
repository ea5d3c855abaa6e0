#pragma once

// SIGTERM and SIGINT as the end of a supervised graph's run.

#include <csignal>

#include "common/base/mutex.h"
#include "common/base/thread.h"
#include "common/train/graph_supervisor.h"

namespace dtf::train {

// A signal after the first: a sender that repeats itself at once counts as one.
enum class SecondSignal { kIgnored, kEndsProcess };

// Catches SIGTERM and SIGINT while it exists. The supervisor's stop is requested, and a step that
// is still under way 5 s later is aborted: the checkpoint must be written before the sender of the
// signal kills the process. With kEndsProcess a second signal ends the process as without a
// handler. Owns: a thread; the handlers before it, which it restores. Borrows: the supervisor.
// Threads: any; one at a time in a process. Blocks: never. Errors: none.
class SignalWatch {
 public:
  explicit SignalWatch(GraphSupervisor& supervisor, SecondSignal second = SecondSignal::kIgnored);
  ~SignalWatch();
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;

 private:
  void watch();

  GraphSupervisor& supervisor_;
  const SecondSignal second_;
  struct sigaction before_term_ {};
  struct sigaction before_int_ {};
  Mutex mutex_;
  CondVar changed_;
  bool ending_ DTF_GUARDED_BY(mutex_) = false;
  Thread thread_;
};

}  // namespace dtf::train
