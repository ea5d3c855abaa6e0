#include "common/net/reactor.h"

#include <kj/debug.h>
#include <sched.h>

#include <utility>

#include "common/base/check.h"
#include "common/base/log.h"
#include "common/net/busy_poll.h"
#include "common/net/connector.h"
#include "common/net/descriptor_watch.h"
#include "common/net/message_stream.h"

namespace dtf::net {

void Reactor::run(Duration busy_poll) {
  port.schedule();  // kj events may have been queued before
  const SystemClock clock;
  BusyPoll idle(busy_poll, clock);
  while (!ioc.stopped()) {
    if (!port.pollOnce()) {
      if (idle.again()) continue;
      if (!port.beforeSleep() && ioc.run_one() == 0) continue;
    }
    idle.worked();
  }
  ioc.restart();
}

void ReactorLoop::post(std::function<void()> fn) {
  DTF_CHECK(fn != nullptr);
  asio::post(reactor_.ioc, [&port = reactor_.port, fn = std::move(fn)] {
    AsioEventPort::Io io(port);
    fn();
  });
}

std::unique_ptr<DescriptorWatch> ReactorLoop::watch(int fd, std::function<void()> ready) {
  return watchDescriptor(reactor_.port, fd, std::move(ready));
}

kj::Promise<kj::Own<MessageStream>> ReactorLoop::connect(std::string host, uint16_t port,
                                                         ConnectOptions options,
                                                         const Limits& limits,
                                                         std::shared_ptr<BufferPool> pool) {
  options.credentials = credentials_;
  return connectStream(reactor_.port, std::move(host), port, std::move(options), limits,
                       std::move(pool));
}

class IoThread::Tasks final : private kj::TaskSet::ErrorHandler {
 public:
  void add(kj::Promise<void> task) { set_.add(kj::mv(task)); }

 private:
  void taskFailed(
      kj::Exception&& exception) override {  // call() has handled its own; only a bug gets here
    log::error("event=io_task_failed reason=\"{}\"", exception.getDescription().cStr());
  }
  kj::TaskSet set_{*this};
};

IoThread::IoThread(std::string name, Duration busy_poll, Credentials credentials)
    : name_(std::move(name)), busy_poll_(busy_poll), credentials_(std::move(credentials)) {
  std::promise<void> ready;
  auto is_ready = ready.get_future();
  thread_ = Thread(name_, [this, &ready] { runLoop(ready); });
  is_ready.get();
}

IoThread::~IoThread() {
  DTF_CHECK_MSG(!inLoop(), "an io thread can't join itself: " + name_);
  posts_under_way_.fetch_add(1);
  asio::post(reactor_->ioc, [this] { stopOnLoop(); });
  posts_under_way_.fetch_sub(1);
  thread_.join();
}

void IoThread::runLoop(std::promise<void>& ready) {
  Reactor reactor;
  Tasks tasks;
  reactor_ = &reactor;
  tasks_ = &tasks;
  loop_id_ = std::this_thread::get_id();
  ready.set_value();
  reactor.run(busy_poll_);
  while (posts_under_way_.load() > 0) ::sched_yield();
}

// Also runs functions posted or made runnable by the cleanups, while kj objects may still be
// destroyed in the loop.
void IoThread::stopOnLoop() {
  assertInLoop();
  constexpr int kRoundsMax = 1000;
  for (;;) {
    std::function<void()> cleanup;
    {
      MutexLock lock(mu_);
      if (cleanups_.empty()) break;
      cleanup = std::move(cleanups_.back());
      cleanups_.pop_back();
    }
    AsioEventPort::Io io(reactor_->port);
    cleanup();
    cleanup = nullptr;
  }
  asio::post(reactor_->ioc, [this] {
    for (int round = 0; round < kRoundsMax && reactor_->ioc.poll() > 0; ++round) {
    }
    reactor_->stop();
  });
}

void IoThread::post(std::function<void()> fn) {
  DTF_CHECK(fn != nullptr);
  posts_under_way_.fetch_add(1);
  asio::post(reactor_->ioc, [this, fn = std::move(fn)] {
    AsioEventPort::Io io(reactor_->port);
    fn();
  });
  posts_under_way_.fetch_sub(1);
}

kj::Promise<kj::Own<MessageStream>> IoThread::connect(std::string host, uint16_t port,
                                                      ConnectOptions options, const Limits& limits,
                                                      std::shared_ptr<BufferPool> pool) {
  options.credentials = credentials_;
  return connectStream(reactor_->port, std::move(host), port, std::move(options), limits,
                       std::move(pool));
}

bool IoThread::addPolled(Polled& polled) {
  assertInLoop();
  if (busy_poll_ > Duration{0}) reactor_->port.addPolled(polled);
  return busy_poll_ > Duration{0};
}

void IoThread::removePolled(Polled& polled) {
  assertInLoop();
  reactor_->port.removePolled(polled);
}

std::unique_ptr<DescriptorWatch> IoThread::watch(int fd, std::function<void()> ready) {
  assertInLoop();
  return watchDescriptor(reactor_->port, fd, std::move(ready));
}

void IoThread::onStop(std::function<void()> cleanup) {
  DTF_CHECK(cleanup != nullptr);
  MutexLock lock(mu_);
  cleanups_.push_back(std::move(cleanup));
}

void IoThread::addTask(kj::Promise<void> task) {
  assertInLoop();
  tasks_->add(kj::mv(task));
}

Error IoThread::stoppedError(const std::string& name) {
  return Error(ErrorCode::kUnavailable, "the io thread " + name + " ended before the call did");
}

}  // namespace dtf::net
