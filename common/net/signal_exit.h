#pragma once

// The signals that ask a process to end.

#include <functional>
#include <optional>

#include "common/base/clock.h"
#include "common/net/reactor.h"

namespace dtf::net {

// Calls `on_signal` for SIGTERM and SIGINT, on the reactor. Ignores a SIGTERM within two seconds of
// another: a scheduler sends it to every process of a job, dtf-launch included, which passes it on.
// The last of these objects gives back the handlers that the program had before the first.
// Owns: the signal set.
// Borrows: `reactor`.
// Threads: loop-thread only.
// Blocks: never.
class SignalExit {
 public:
  SignalExit(Reactor& reactor, std::function<void(int number)> on_signal);

 private:
  void arm();
  bool isSameRequest(int number);
  // A share of the saved handlers, restored with the last one.
  class SavedHandlers {
   public:
    SavedHandlers();
    ~SavedHandlers();
    SavedHandlers(const SavedHandlers&) = delete;
    SavedHandlers& operator=(const SavedHandlers&) = delete;
  };

  const SystemClock clock_;
  std::optional<TimePoint> terminated_;  // the last SIGTERM passed to on_signal_
  const SavedHandlers saved_;            // before signals_, which replaces the handlers
  asio::signal_set signals_;
  std::function<void(int)> on_signal_;
};

}  // namespace dtf::net
