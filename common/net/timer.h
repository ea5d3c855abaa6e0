#pragma once

// kj's timers on Asio's.

#include <kj/async.h>
#include <kj/timer.h>

#include <cstdint>
#include <functional>

#include "common/base/clock.h"

namespace dtf::net {

class AsioEventPort;

inline kj::Duration toKj(Duration d) {
  return d.count() * kj::NANOSECONDS;
}
inline Duration fromKj(kj::Duration d) {
  return Duration(d / kj::NANOSECONDS);
}

// Resolves when the caller's loop has been awake for `time`. A pause of the process or the machine
// counts as an eighth of it at most, so messages sent before the pause are read first. For
// deadlines by which a peer is judged. `timer` must outlive the promise.
kj::Promise<void> awakeDelay(kj::Timer& timer, Duration time);

// Resolves when `progress` has returned the same value for `time`, while the caller's loop was
// awake. `timer` must outlive the promise.
kj::Promise<void> stillDelay(kj::Timer& timer, Duration time, std::function<uint64_t()> progress);

// Borrows: `port` (must outlive this and every promise made here).
// Threads: loop-thread only.
// Blocks: never.
// Errors: kj::Timer::timeoutAfter() rejects with OVERLOADED, which error_bridge.h turns into
// kDeadline.
class AsioTimer final : public kj::Timer {
 public:
  explicit AsioTimer(AsioEventPort& port) : port_(port) {}
  kj::TimePoint now() const override;
  kj::Promise<void> atTime(kj::TimePoint time) override;
  kj::Promise<void> afterDelay(kj::Duration delay) override;

 private:
  AsioEventPort& port_;
};

}  // namespace dtf::net
