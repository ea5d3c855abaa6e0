#include "tests/sim/scheduler.h"

#include <algorithm>

#include "common/base/check.h"
#include "common/net/timer.h"

namespace dtf::sim {

namespace {

constexpr uint64_t kFnvPrime = 0x100000001b3;

// A promise's timer.
class Delay {
 public:
  Delay(kj::PromiseFulfiller<void>& fulfiller, Scheduler& scheduler, const ProcessRef& process,
        Duration delay)
      : scheduler_(scheduler),
        id_(scheduler.after(delay, process, [&fulfiller] { fulfiller.fulfill(); })) {}
  ~Delay() { scheduler_.cancel(id_); }
  Delay(const Delay&) = delete;
  Delay& operator=(const Delay&) = delete;

 private:
  Scheduler& scheduler_;
  const uint64_t id_;
};

}  // namespace

uint64_t Scheduler::at(TimePoint time, const ProcessRef& process, std::function<void()> event) {
  const uint64_t id = next_id_++;
  const Key key{std::max(time, now_), order_++};
  keys_.emplace(id, key);
  queue_.emplace(key, Event{id, process, std::move(event)});
  return id;
}

void Scheduler::cancel(uint64_t id) {
  const auto found = keys_.find(id);
  if (found == keys_.end()) return;
  queue_.erase(found->second);
  keys_.erase(found);
}

void Scheduler::mix(std::string_view text) {
  for (const char c : text) hash_ = (hash_ ^ static_cast<unsigned char>(c)) * kFnvPrime;
}

bool Scheduler::wait() {
  DTF_CHECK_MSG(!queue_.empty(), "nothing can happen any more, but somebody waits");
  auto node = queue_.extract(queue_.begin());
  Event& event = node.mapped();
  now_ = node.key().first;
  if (event.process && !event.process->dead && event.process->frozen_until > now_) {
    // Held events keep the order in which they were made, however often they are held.
    node.key().first = event.process->frozen_until;
    keys_[event.id] = node.key();
    queue_.insert(std::move(node));
    return false;
  }
  keys_.erase(event.id);
  if (event.process && event.process->dead) return false;
  hash_ = (hash_ ^ static_cast<uint64_t>(now_.time_since_epoch().count())) * kFnvPrime;
  ++events_done_;
  event.run();
  return false;
}

kj::TimePoint SimTimer::now() const {
  return kj::origin<kj::TimePoint>() + net::toKj(scheduler_.now().time_since_epoch());
}

kj::Promise<void> SimTimer::atTime(kj::TimePoint time) {
  return afterDelay(time - now());
}

kj::Promise<void> SimTimer::afterDelay(kj::Duration delay) {
  return kj::newAdaptedPromise<void, Delay>(scheduler_, process_, net::fromKj(delay));
}

}  // namespace dtf::sim
