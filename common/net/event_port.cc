#include "common/net/event_port.h"

#include <algorithm>

#include "common/base/check.h"

namespace dtf::net {

struct AsioEventPort::Depth {
  explicit Depth(AsioEventPort& port) : port(port) { ++port.depth_; }
  ~Depth() {
    --port.depth_;
    DTF_CHECK(port.depth_ >= 0);
  }
  AsioEventPort& port;
};

AsioEventPort::AsioEventPort(asio::io_context& ioc)
    : ioc_(ioc),
      guard_(asio::make_work_guard(ioc)),
      self_(std::make_shared<AsioEventPort*>(this)) {}

AsioEventPort::~AsioEventPort() noexcept(false) {
  *self_ = nullptr;
}

void AsioEventPort::attach(kj::EventLoop& loop, kj::WaitScope& wait_scope) {
  loop_ = &loop;
  wait_scope_ = &wait_scope;
}

AsioEventPort::Io::~Io() noexcept(false) {
  if (*alive_ == nullptr) return;
  DTF_CHECK(port_.depth_ > 0);
  --port_.depth_;
  port_.pumpNow();
}

void AsioEventPort::schedule() {
  if (loop_ == nullptr || depth_ != 0 || posted_) return;
  posted_ = true;
  postPump();
}

void AsioEventPort::whenDrained(std::function<void()> hook) {
  DTF_CHECK(hook != nullptr);
  hooks_.push_back(std::move(hook));
  schedule();
}

bool AsioEventPort::wait() {
  Depth depth(*this);
  runHooks();
  if (loop_ == nullptr || !loop_->isRunnable()) {  // a hook may have queued events
    DTF_CHECK_MSG(!ioc_.stopped(), "a promise is awaited on a loop that was stopped");
    runOneHandler();
  }
  return woken_.exchange(false, std::memory_order_acq_rel);
}

void AsioEventPort::runOneHandler() {
  if (busy_poll_) {
    busy_poll_->worked();
    do {
      if (pollMemory() || (descriptorsAreDue() && ioc_.poll_one() > 0)) return;
    } while (busy_poll_->again());
    if (beforeSleep()) return;
  }
  ioc_.run_one();
}

// Handlers that work in memory has posted run at once.
bool AsioEventPort::pollOnce() {
  const bool had_work = pollMemory();
  if (!had_work && !descriptorsAreDue()) return false;
  return ioc_.poll() > 0 || had_work;
}

bool AsioEventPort::descriptorsAreDue() {
  return polled_.empty() || ++looks_ % kMemoryLooks == 0;
}

// The first that has work may change the list.
bool AsioEventPort::pollMemory() {
  if (polled_.empty()) return false;
  const Io io(*this);
  return std::ranges::any_of(polled_, [](Polled* polled) { return polled->poll(); });
}

// All look before the loop goes on: else several that give up waiting would do so one after the
// other, each behind a window of polling.
bool AsioEventPort::beforeSleep() {
  if (polled_.empty()) return false;
  const Io io(*this);
  bool had_work = false;
  for (Polled* const polled : std::vector<Polled*>(polled_)) {
    const bool is_there = std::ranges::find(polled_, polled) != polled_.end();
    if (is_there && polled->beforeSleep()) had_work = true;
  }
  return had_work;
}

bool AsioEventPort::poll() {
  if (depth_ == 0) {  // inside pump(), Asio is already on the stack
    Depth depth(*this);
    runHooks();
    ioc_.poll();
  }
  return woken_.exchange(false, std::memory_order_acq_rel);
}

void AsioEventPort::setRunnable(bool runnable) {
  if (runnable) schedule();
}

void AsioEventPort::wake() const {
  woken_.store(true, std::memory_order_release);
  postPump();
}

void AsioEventPort::postPump() const {
  asio::post(ioc_, [self = self_] {
    if (*self != nullptr) (*self)->pump();
  });
}

void AsioEventPort::pumpNow() {
  if (loop_ != nullptr && depth_ == 0 && (loop_->isRunnable() || !hooks_.empty())) pump();
}

void AsioEventPort::pump() {
  posted_ = false;
  if (depth_ != 0 || loop_ == nullptr) return;  // kj drives: its wait() handles everything
  Depth depth(*this);
  // Only WaitScope::poll() collects events from other threads. Only EventLoop::run() is bounded,
  // and makes setRunnable(true) fire again. Hence both.
  if (woken_.load(std::memory_order_acquire)) wait_scope_->poll();
  DTF_CHECK(wait_scope_ != nullptr);
  loop_->run(kTurnsMax);
  runHooks();
  if (loop_->isRunnable() && !posted_) {
    posted_ = true;
    postPump();
  }
}

void AsioEventPort::runHooks() {
  if (hooks_.empty()) return;
  const auto hooks = std::move(hooks_);
  hooks_.clear();
  for (const auto& hook : hooks) hook();
}

}  // namespace dtf::net
