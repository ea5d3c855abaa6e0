#include "common/net/timer.h"

#include <kj/async.h>

#include <memory>
#include <utility>

#include "common/base/check.h"
#include "common/net/asio.h"
#include "common/net/event_port.h"

namespace dtf::net {

namespace {

// A promise's timer. Asio's handler may run after the promise is gone; it then finds `waiter` null.
class Delay {
 public:
  Delay(kj::PromiseFulfiller<void>& fulfiller, AsioEventPort& port, kj::Duration delay)
      : shared_(std::make_shared<Shared>(port, fulfiller)) {
    shared_->timer.expires_after(fromKj(delay));
    shared_->timer.async_wait([shared = shared_](const error_code&) {
      if (shared->waiter == nullptr) return;
      AsioEventPort::Io io(shared->port);
      shared->waiter->fulfill();
    });
  }
  ~Delay() {
    shared_->waiter = nullptr;
    shared_->timer.cancel();
  }
  Delay(const Delay&) = delete;
  Delay& operator=(const Delay&) = delete;

 private:
  struct Shared {
    Shared(AsioEventPort& port, kj::PromiseFulfiller<void>& fulfiller)
        : port(port), timer(port.ioc()), waiter(&fulfiller) {}
    AsioEventPort& port;
    asio::steady_timer timer;
    kj::PromiseFulfiller<void>* waiter;
  };
  std::shared_ptr<Shared> shared_;
};

constexpr int kAwakeSlices = 8;

kj::Promise<void> awakeSlices(kj::Timer& timer, kj::Duration slice, int left) {
  if (left == 0) return kj::READY_NOW;
  return timer.afterDelay(slice).then(
      [&timer, slice, left] { return awakeSlices(timer, slice, left - 1); });
}

kj::Promise<void> stillSlices(kj::Timer& timer, kj::Duration slice, int left,
                              std::function<uint64_t()> progress, uint64_t before) {
  if (left == 0) return kj::READY_NOW;
  return timer.afterDelay(slice).then(
      [&timer, slice, left, progress = std::move(progress), before]() mutable {
        const uint64_t now = progress();
        const int still = now == before ? left - 1 : kAwakeSlices;
        return stillSlices(timer, slice, still, std::move(progress), now);
      });
}

}  // namespace

kj::Promise<void> awakeDelay(kj::Timer& timer, Duration time) {
  DTF_CHECK(time >= Duration{0});
  return awakeSlices(timer, toKj(time / kAwakeSlices), kAwakeSlices);
}

kj::Promise<void> stillDelay(kj::Timer& timer, Duration time, std::function<uint64_t()> progress) {
  DTF_CHECK(time >= Duration{0} && progress != nullptr);
  const uint64_t before = progress();
  return stillSlices(timer, toKj(time / kAwakeSlices), kAwakeSlices, std::move(progress), before);
}

kj::TimePoint AsioTimer::now() const {
  return kj::systemPreciseMonotonicClock().now();
}

kj::Promise<void> AsioTimer::atTime(kj::TimePoint time) {
  return afterDelay(time - now());
}

kj::Promise<void> AsioTimer::afterDelay(kj::Duration delay) {
  return kj::newAdaptedPromise<void, Delay>(port_, delay);
}

}  // namespace dtf::net
