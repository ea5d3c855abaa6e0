#pragma once

// The signals by which a person, a terminal or a service manager asks a launch to stop.

#include <functional>

#include "common/net/asio.h"

namespace dtf::launcher {

// Takes over SIGINT, SIGTERM, SIGQUIT and, unless it is ignored (nohup has asked for the job to
// outlive the terminal), SIGHUP.
// Borrows: `io` (must outlive this).
// Threads: loop-thread only.
// Blocks: never.
class StopSignals {
 public:
  // `on_signal` runs on the loop, once for each signal.
  StopSignals(boost::asio::io_context& io, std::function<void(int signal)> on_signal);

 private:
  void await();

  const std::function<void(int)> on_signal_;
  boost::asio::signal_set signals_;
};

}  // namespace dtf::launcher
