#include "common/train/signal_watch.h"

#include <atomic>
#include <chrono>
#include <string>

#include "common/base/check.h"

namespace dtf::train {
namespace {

using std::chrono::steady_clock;

constexpr auto kStopGrace = std::chrono::seconds(5);
constexpr auto kSignalPoll = std::chrono::milliseconds(100);

std::atomic<int> signalled{0};

void noteSignal(int number) {
  signalled = number;
}

}  // namespace

SignalWatch::SignalWatch(GraphSupervisor& supervisor) : supervisor_(supervisor) {
  signalled = 0;
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
  MutexLock lock(mutex_);
  while (!ending_) {
    if (signalled != 0 && abort_at == steady_clock::time_point::max()) {
      supervisor_.requestStop();
      abort_at = steady_clock::now() + kStopGrace;
    }
    if (steady_clock::now() >= abort_at &&
        supervisor_.abortStep("signal " + std::to_string(signalled.load())))
      return;
    changed_.waitUntil(mutex_, steady_clock::now() + kSignalPoll);
  }
}

}  // namespace dtf::train
