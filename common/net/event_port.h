#pragma once

// One thread, one epoll: Asio owns sockets, timers and signals, and kj's event loop runs on the
// same io_context. Control may flow both ways:
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
#include "common/net/polled.h"

namespace dtf::net {

// Owns: a work guard, so that run() returns only when stopped.
// Borrows: `ioc` (must outlive this).
// Threads: loop-thread only, except wake().
// Blocks: wait() until a handler ran.
// Errors: wait() throws kj::Exception if the io_context is stopped, because no event would ever
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

  // Must be the first statement of every Asio handler that may fulfil a kj promise:
  // `AsioEventPort::Io io(port);`. The continuations of the promises run at its end of scope,
  // without a detour through the io_context's queue.
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

  // Requests a pump. Needed only where promises are made on the loop's thread outside of kj and of
  // an Io scope.
  void schedule();

  // Runs `hook` once, when the kj queue is empty or at the end of its turn: the place to flush
  // small output in one write.
  void whenDrained(std::function<void()> hook);

  // Sets how long wait() polls before it sleeps. Default: not at all.
  void setBusyPoll(Duration window) { busy_poll_.emplace(window, clock_); }

  // See Loop::addPolled(). The runner of the io_context calls the last two: pollOnce() in place of
  // io_context::poll(), beforeSleep() when it is about to sleep. Both return true if there was
  // work.
  void addPolled(Polled& polled) { polled_.push_back(&polled); }
  void removePolled(Polled& polled) { std::erase(polled_, &polled); }
  bool pollOnce();
  bool beforeSleep();

  bool wait() override;
  bool poll() override;
  void setRunnable(bool runnable) override;
  void wake() const override;  // any thread

 private:
  struct Depth;
  // A look at descriptors is a system call, one into memory is not.
  static constexpr unsigned kMemoryLooks = 4;
  bool pollMemory();
  // Whether to look at descriptors, too, this time.
  bool descriptorsAreDue();
  static constexpr unsigned kTurnsMax =
      512;  // kj events a pump runs before Asio may serve other sockets

  void pump();
  void pumpNow();
  void postPump() const;
  void runHooks();
  void runOneHandler();

  asio::io_context& ioc_;
  // Permanent: without it the io_context would stop each time outstanding work reached zero.
  asio::executor_work_guard<asio::io_context::executor_type> guard_;
  std::shared_ptr<AsioEventPort*>
      self_;  // set to null by the destructor; posted handlers check it first
  kj::EventLoop* loop_ = nullptr;
  kj::WaitScope* wait_scope_ = nullptr;
  std::vector<std::function<void()>> hooks_;
  std::vector<Polled*> polled_;
  unsigned looks_ = 0;
  mutable std::atomic<bool> woken_{false};
  const SystemClock clock_;
  std::optional<BusyPoll> busy_poll_;
  int depth_ = 0;        // > 0 while kj or an Io scope is on the stack
  bool posted_ = false;  // a pump is in the io_context's queue
};

}  // namespace dtf::net
