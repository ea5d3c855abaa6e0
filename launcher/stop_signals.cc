#include "launcher/stop_signals.h"

#include <csignal>
#include <utility>

#include "common/base/check.h"

namespace dtf::launcher {

StopSignals::StopSignals(boost::asio::io_context& io, std::function<void(int signal)> on_signal)
    : on_signal_(std::move(on_signal)), signals_(io) {
  DTF_CHECK(on_signal_);
  struct sigaction hangup {};
  ::sigaction(SIGHUP, nullptr, &hangup);
  boost::system::error_code ignored;
  for (const int signal : {SIGINT, SIGTERM, SIGQUIT}) signals_.add(signal, ignored);
  if (hangup.sa_handler != SIG_IGN) signals_.add(SIGHUP, ignored);
  await();
}

void StopSignals::await() {
  signals_.async_wait([this](const boost::system::error_code& error, int signal) {
    if (error) return;
    on_signal_(signal);
    await();
  });
}

}  // namespace dtf::launcher
