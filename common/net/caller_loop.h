#pragma once

// A loop without a thread: it runs on the calling thread while that waits for a promise. A thread
// that alternates between computing and waiting for a reply saves the two hand-overs between
// threads that an IoThread costs for each request.

#include <type_traits>
#include <utility>

#include "common/net/credentials.h"
#include "common/net/error_bridge.h"
#include "common/net/event_port.h"
#include "common/net/loop.h"
#include "common/net/timer.h"

namespace dtf::net {

// Owns: the io_context, the kj loop. Objects on the loop must be destroyed in a call().
// Threads: one caller at a time, not always the same; it may have no other kj loop. post() from
// any. Nothing runs between calls: bytes wait in the sockets, timers fire late.
// Blocks: call() until its promise is resolved.
class CallerLoop final : public Loop {
 public:
  // `busy_poll`: the time it polls before it sleeps; see Reactor::run().
  // `credentials`: for connections made on the loop.
  explicit CallerLoop(Duration busy_poll, Credentials credentials = {});
  ~CallerLoop() override;

  // Runs `fn` on the loop and returns its result, or the result of its promise if it returns a
  // kj::Promise.
  // Errors: exceptions of `fn`; a kj::Exception arrives as dtf::Error (error_bridge.h).
  template <class Fn>
  auto call(Fn fn);

  const Clock& clock() const override { return clock_; }
  AsioTimer& timer() override { return core_->timer; }
  void post(std::function<void()> fn) override;
  bool addPolled(Polled& polled) override;
  void removePolled(Polled& polled) override { core_->port.removePolled(polled); }
  std::unique_ptr<DescriptorWatch> watch(int fd, std::function<void()> ready) override;
  kj::Promise<kj::Own<MessageStream>> connect(std::string host, uint16_t port,
                                              ConnectOptions options, const Limits& limits,
                                              std::shared_ptr<BufferPool> pool) override;

 private:
  struct Core {
    asio::io_context ioc{1};
    AsioEventPort port{ioc};
    kj::EventLoop loop{port};
    AsioTimer timer{port};
  };
  const bool polls_;
  const Credentials credentials_;
  const SystemClock clock_;
  const std::unique_ptr<Core> core_;
};

template <class Fn>
auto CallerLoop::call(Fn fn) {
  kj::WaitScope scope(core_->loop);
  core_->port.attach(core_->loop, scope);
  if constexpr (kIsPromise<std::invoke_result_t<Fn&>>) {
    try {
      return kj::evalNow([&fn] { return bridgeErrors(fn); }).wait(scope);
    } catch (const kj::Exception& exception) {
      throw toError(exception);
    }
  } else {
    return fn();
  }
}

}  // namespace dtf::net
