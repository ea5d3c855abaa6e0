#include "common/net/signal_exit.h"

#include <array>
#include <csignal>
#include <utility>

#include "common/base/check.h"
#include "common/base/mutex.h"

namespace dtf::net {

namespace {
constexpr Duration kSameRequestWithin = std::chrono::seconds(2);
constexpr std::array kSignals = {SIGTERM, SIGINT};

// Handlers belong to the process.
struct ProcessHandlers {
  Mutex mutex;
  size_t users DTF_GUARDED_BY(mutex) = 0;
  std::array<struct sigaction, kSignals.size()> before DTF_GUARDED_BY(mutex){};
};
ProcessHandlers& processHandlers() {
  static ProcessHandlers handlers;
  return handlers;
}
}  // namespace

SignalExit::SavedHandlers::SavedHandlers() {
  ProcessHandlers& process = processHandlers();
  MutexLock lock(process.mutex);
  if (process.users++ > 0) return;
  for (size_t i = 0; i < kSignals.size(); ++i)
    DTF_CHECK(::sigaction(kSignals[i], nullptr, &process.before[i]) == 0);
}

SignalExit::SavedHandlers::~SavedHandlers() {
  ProcessHandlers& process = processHandlers();
  MutexLock lock(process.mutex);
  DTF_CHECK(process.users > 0);
  if (--process.users > 0) return;
  for (size_t i = 0; i < kSignals.size(); ++i)
    DTF_CHECK(::sigaction(kSignals[i], &process.before[i], nullptr) == 0);
}

SignalExit::SignalExit(Reactor& reactor, std::function<void(int)> on_signal)
    : signals_(reactor.ioc, SIGTERM, SIGINT), on_signal_(std::move(on_signal)) {
  DTF_CHECK(on_signal_ != nullptr);
  arm();
}

void SignalExit::arm() {
  signals_.async_wait([this](const error_code& error, int number) {
    if (error) return;
    if (!isSameRequest(number)) on_signal_(number);
    arm();
  });
}

bool SignalExit::isSameRequest(int number) {
  if (number != SIGTERM) return false;
  const TimePoint now = clock_.now();
  if (terminated_ && now < *terminated_ + kSameRequestWithin) return true;
  terminated_ = now;
  return false;
}

}  // namespace dtf::net
