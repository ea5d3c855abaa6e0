#pragma once

// A thread's loop (Reactor, and ReactorLoop as its Loop interface), and a named thread that runs
// one (IoThread).

#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "common/base/check.h"
#include "common/base/mutex.h"
#include "common/base/thread.h"
#include "common/net/asio.h"
#include "common/net/credentials.h"
#include "common/net/error_bridge.h"
#include "common/net/event_port.h"
#include "common/net/loop.h"
#include "common/net/timer.h"

namespace dtf::net {

// The io_context, event port, kj loop and wait scope of one thread. Members are constructed in this
// order and destroyed in reverse. All kj objects must be destroyed before the Reactor, on its
// thread. Use it in a tool or a test as `promise.wait(reactor.wait_scope)`, in a daemon as run().
// Threads: made, run and destroyed on one thread; stop() and asio::post(ioc, ...) from any.
struct Reactor {
  Reactor() { port.attach(loop, wait_scope); }

  // Runs handlers and kj events until stop(). A stop() before run() makes it return at once.
  // `busy_poll`: the time the loop polls after its last work before it sleeps; see BusyPoll.
  void run(Duration busy_poll = {});
  void stop() { ioc.stop(); }

  asio::io_context ioc{1};  // the hint says one thread runs it; others may still post
  AsioEventPort port{ioc};
  kj::EventLoop loop{port};
  kj::WaitScope wait_scope{loop};
  AsioTimer timer{port};
};

// A Reactor as a Loop.
// Borrows: `reactor` (must outlive this).
class ReactorLoop final : public Loop {
 public:
  // `credentials`: for connections made on the loop.
  explicit ReactorLoop(Reactor& reactor, Credentials credentials = {})
      : reactor_(reactor), credentials_(std::move(credentials)) {}
  const Clock& clock() const override { return clock_; }
  AsioTimer& timer() override { return reactor_.timer; }
  void post(std::function<void()> fn) override;
  std::unique_ptr<DescriptorWatch> watch(int fd, std::function<void()> ready) override;
  kj::Promise<kj::Own<MessageStream>> connect(std::string host, uint16_t port,
                                              ConnectOptions options, const Limits& limits,
                                              std::shared_ptr<BufferPool> pool) override;

 private:
  Reactor& reactor_;
  const Credentials credentials_;
  const SystemClock clock_;
};

// The polling time of loops that carry parameters. An idle daemon, with a heartbeat a second, pays
// 0.01 % of a core.
inline constexpr Duration kDataBusyPoll = std::chrono::microseconds(100);

// A named thread that runs a Reactor for as long as this object lives.
// Owns: the thread, its Reactor, functions posted and cleanups registered.
// Threads: thread-safe, but destroy it only after every other user has stopped.
// Blocks: call() until its result; the destructor until the loop has run the cleanups and earlier
// posts.
// Errors: a posted function or a cleanup that throws ends the process, since nothing could receive
// its exception.
class IoThread final : public Loop {
 public:
  // `credentials`: for connections made on the loop.
  explicit IoThread(std::string name, Duration busy_poll = {}, Credentials credentials = {});
  ~IoThread() override;
  IoThread(const IoThread&) = delete;
  IoThread& operator=(const IoThread&) = delete;

  // Runs `fn` on the loop, later, in the order of one thread's posts.
  void post(std::function<void()> fn) override;

  const Clock& clock() const override { return clock_; }
  bool addPolled(Polled& polled) override;
  void removePolled(Polled& polled) override;
  std::unique_ptr<DescriptorWatch> watch(int fd, std::function<void()> ready) override;
  kj::Promise<kj::Own<MessageStream>> connect(std::string host, uint16_t port,
                                              ConnectOptions options, const Limits& limits,
                                              std::shared_ptr<BufferPool> pool) override;

  // Runs `fn` on the loop and returns its result, or the result of its promise if it returns a
  // kj::Promise. Exceptions of `fn` are rethrown here; a kj::Exception arrives as dtf::Error
  // (error_bridge.h). Bound the promise's time with timer().timeoutAfter(). On the loop's own
  // thread only with a `fn` that does not return a promise.
  template <class Fn>
  std::invoke_result_t<Fn&> call(Fn fn) requires(!kIsPromise<std::invoke_result_t<Fn&>>);
  template <class Fn>
  PromiseValue<std::invoke_result_t<Fn&>> call(Fn fn) requires(
      kIsPromise<std::invoke_result_t<Fn&>>);

  // Registers a function that the destructor runs on the loop, where the loop's objects must be
  // destroyed. Functions run in reverse order of registration.
  void onStop(std::function<void()> cleanup);

  bool inLoop() const { return std::this_thread::get_id() == loop_id_; }
  void assertInLoop() const { DTF_CHECK_MSG(inLoop(), "io thread " + name_); }

  // Loop-thread only, except reactor().ioc as a target of asio::post.
  Reactor& reactor() { return *reactor_; }
  AsioEventPort& port() { return reactor_->port; }
  AsioTimer& timer() override { return reactor_->timer; }
  const std::string& name() const { return name_; }

 private:
  class Tasks;  // kj promises started by call()

  // The result of a call: values only, so that threads share no exception object.
  template <class T>
  using Outcome = std::variant<std::conditional_t<std::is_void_v<T>, std::monostate, T>, Error>;

  // `name` is a copy: if the thread ends during a call, this object may be gone before the caller
  // reads it.
  template <class T>
  static T await(std::future<Outcome<T>> future, const std::string& name);
  void runLoop(std::promise<void>& ready);
  void stopOnLoop();
  void addTask(kj::Promise<void> task);
  static Error stoppedError(const std::string& name);

  const std::string name_;
  const Duration busy_poll_;
  const Credentials credentials_;
  const SystemClock clock_;
  Reactor* reactor_ =
      nullptr;               // lives on the thread's stack; constant from constructor to destructor
  Tasks* tasks_ = nullptr;   // loop thread
  std::thread::id loop_id_;  // constant, like reactor_
  Mutex mu_;
  std::vector<std::function<void()>> cleanups_ DTF_GUARDED_BY(mu_);
  // asio::post uses the io_context after the loop has seen the function, so the thread ends only
  // when no post is in progress.
  std::atomic<int> posts_under_way_{0};
  Thread thread_;  // last: its body uses the members above
};

template <class T>
T IoThread::await(std::future<Outcome<T>> future, const std::string& name) {
  std::optional<Outcome<T>> outcome;
  try {
    outcome.emplace(future.get());
  } catch (const std::future_error&) {  // the loop ended and dropped the function or its promise
    outcome.emplace(stoppedError(name));
  }
  if (auto* error = std::get_if<Error>(&*outcome)) throw Error(std::move(*error));
  if constexpr (!std::is_void_v<T>) return std::get<0>(std::move(*outcome));
}

template <class Fn>
std::invoke_result_t<Fn&> IoThread::call(Fn fn) requires(!kIsPromise<std::invoke_result_t<Fn&>>) {
  using Value = std::invoke_result_t<Fn&>;
  if (inLoop()) return fn();
  const std::string name = name_;
  auto done = std::make_shared<std::promise<Outcome<Value>>>();
  auto future = done->get_future();
  post([&fn, done = std::move(done)] {
    try {
      if constexpr (std::is_void_v<Value>) {
        fn();
        done->set_value({});
      } else {
        done->set_value(Outcome<Value>(std::in_place_index<0>, fn()));
      }
    } catch (...) {
      done->set_value(currentError());
    }
  });
  return await<Value>(std::move(future), name);
}

template <class Fn>
PromiseValue<std::invoke_result_t<Fn&>> IoThread::call(Fn fn) requires(
    kIsPromise<std::invoke_result_t<Fn&>>) {
  using Value = PromiseValue<std::invoke_result_t<Fn&>>;
  DTF_CHECK_MSG(!inLoop(), "call() with a promise would wait for its own thread: " + name_);
  const std::string name = name_;
  auto done = std::make_shared<std::promise<Outcome<Value>>>();
  auto future = done->get_future();
  post([this, &fn, done = std::move(done)] {
    addTask(kj::evalNow([&fn] { return bridgeErrors(fn); })
                .then(
                    [done](auto&&... value) {
                      done->set_value(Outcome<Value>(std::in_place_index<0>, std::move(value)...));
                    },
                    [done](kj::Exception&& exception) { done->set_value(toError(exception)); }));
  });
  return await<Value>(std::move(future), name);
}

}  // namespace dtf::net
