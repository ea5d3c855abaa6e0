#include "common/train/signal_watch.h"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <string>

#include "common/base/check.h"

namespace dtf::train {
namespace {

using std::chrono::steady_clock;

constexpr auto kStopGrace = std::chrono::seconds(5);
constexpr auto kSignalPoll = std::chrono::milliseconds(100);

std::atomic<int> signalled{0};  // the last one
std::atomic<int> signals{0};    // their number

void noteSignal(int number) {
  signalled = number;
  ++signals;
}

// To the process, as this thread may block the signal.
void endProcess() {
  struct sigaction action {};
  action.sa_handler = SIG_DFL;
  sigemptyset(&action.sa_mask);
  sigaction(signalled, &action, nullptr);
  ::kill(::getpid(), signalled);
}

}  // namespace

SignalWatch::SignalWatch(GraphSupervisor& supervisor, SecondSignal second)
    : supervisor_(supervisor), second_(second) {
  signalled = signals = 0;
  struct sigaction action {};
  action.sa_handler = noteSignal;
  sigemptyset(&action.sa_mask);
  sigaction(SIGTERM, &action, &before_term_);
  sigaction(SIGINT, &action, &before_int_);
  thread_ = Thread("supervisor", [this] { watch(); });
}

SignalWatch::~SignalWatch() {
  {
    MutexLock lock(mutex_);
    DTF_CHECK(!ending_);
    ending_ = true;
  }
  changed_.notifyAll();
  thread_.join();
  sigaction(SIGTERM, &before_term_, nullptr);
  sigaction(SIGINT, &before_int_, nullptr);
}

void SignalWatch::watch() {
  steady_clock::time_point abort_at = steady_clock::time_point::max();
  int first = 0;  // the signals that count as the first, one poll later
  bool is_requested = false, is_aborted = false;
  MutexLock lock(mutex_);
  while (!ending_) {
    const int seen = signals;
    if (seen > 0 && !is_requested) {
      is_requested = true;
      supervisor_.requestStop();
      abort_at = steady_clock::now() + kStopGrace;
    } else if (is_requested && first == 0) {
      first = seen;
    } else if (first > 0 && seen > first && second_ == SecondSignal::kEndsProcess) {
      endProcess();
    }
    if (!is_aborted && steady_clock::now() >= abort_at)
      is_aborted = supervisor_.abortStep("signal " + std::to_string(signalled.load()));
    changed_.waitUntil(mutex_, steady_clock::now() + kSignalPoll);
  }
}

}  // namespace dtf::train
