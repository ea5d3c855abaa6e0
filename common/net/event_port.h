#pragma once

// One thread, one epoll: Asio owns sockets, timers and signals, kj's event loop is a passenger on
// the same io_context. Control may flow both ways:
//   Asio drives: io_context::run() runs a posted pump(), which runs a bounded number of kj events;
//   kj drives:   promise.wait(wait_scope) calls wait(), which runs one Asio handler. For tools,
//   tests and start-up.

#include <kj/async.h>

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "common/base/clock.h"
#include "common/net/asio.h"
#include "common/net/busy_poll.h"

namespace dtf::net {

// Owns: a work guard, so that run() returns only when stopped.
// Borrows: `ioc` (must outlive this).
// Threads: loop-thread only, except wake().
// Blocks: wait() until a handler ran.
// Errors: wait() throws kj::Exception when the io_context is stopped, because nothing would ever
// arrive.
class AsioEventPort final : public kj::EventPort {
 public:
  explicit AsioEventPort(asio::io_context& ioc);
  ~AsioEventPort() noexcept(false);
  AsioEventPort(const AsioEventPort&) = delete;
  AsioEventPort& operator=(const AsioEventPort&) = delete;

  // Both must outlive the last handler that runs on the io_context.
  void attach(kj::EventLoop& loop, kj::WaitScope& wait_scope);

  asio::io_context& ioc() { return ioc_; }

  // The first statement of every Asio handler that may fulfil a kj promise: `AsioEventPort::Io
  // io(port);`. The promises' consequences run when it goes out of scope, without a detour through
  // the io_context's queue.
  class Io {
   public:
    explicit Io(AsioEventPort& port) : port_(port), alive_(port.self_) { ++port_.depth_; }
    ~Io() noexcept(false);
    Io(const Io&) = delete;
    Io& operator=(const Io&) = delete;

   private:
    AsioEventPort& port_;
    std::shared_ptr<AsioEventPort*> alive_;
  };

  // Asks for a pump. Needed only where promises are made on the loop's thread outside kj and
  // outside an Io scope.
  void schedule();

  // Runs `hook` once, when the kj queue is empty or at its turn's end: where small output is
  // flushed in one write.
  void whenDrained(std::function<void()> hook);

  // How long wait() asks again and again before it goes to sleep. Default: not at all.
  void setBusyPoll(Duration window) { busy_poll_.emplace(window, clock_); }

  bool wait() override;
  bool poll() override;
  void setRunnable(bool runnable) override;
  void wake() const override;  // any thread

 private:
  struct Depth;
  static constexpr unsigned kTurnsMax =
      512;  // kj events a pump runs before Asio may look at other sockets

  void pump();
  void pumpNow();
  void postPump() const;
  void runHooks();
  void runOneHandler();

  asio::io_context& ioc_;
  // Permanent: a guard that came and went would stop the io_context each time outstanding work
  // reached zero.
  asio::executor_work_guard<asio::io_context::executor_type> guard_;
  std::shared_ptr<AsioEventPort*>
      self_;  // set to null by the destructor; posted handlers look here first
  kj::EventLoop* loop_ = nullptr;
  kj::WaitScope* wait_scope_ = nullptr;
  std::vector<std::function<void()>> hooks_;
  mutable std::atomic<bool> woken_{false};
  const SystemClock clock_;
  std::optional<BusyPoll> busy_poll_;
  int depth_ = 0;        // > 0 while kj or an Io scope is on the stack
  bool posted_ = false;  // a pump is in the io_context's queue
};

}  // namespace dtf::net
