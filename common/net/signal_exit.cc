#include "common/net/signal_exit.h"

#include <csignal>
#include <utility>

#include "common/base/check.h"

namespace dtf::net {

namespace {
constexpr Duration kSameRequestWithin = std::chrono::seconds(2);
}  // namespace

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
