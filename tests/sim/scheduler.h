#pragma once

// Virtual time: one queue of events for the whole simulated cluster. When no kj event is runnable,
// the next event happens and the clock jumps to its time. A frozen process's events are held until
// it goes on; a dead one's are dropped.

#include <kj/async.h>
#include <kj/timer.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>

#include "common/base/clock.h"

namespace dtf::sim {

// The scheduler's state of one process of the cluster.
struct Process {
  explicit Process(std::string process_name) : name(std::move(process_name)) {}
  const std::string name;  // "worker/1.0": its first process
  bool dead = false;
  TimePoint frozen_until{};  // SIGSTOP until then
};
using ProcessRef = std::shared_ptr<Process>;

// Owns: the events.
// Threads: one, with the kj::EventLoop that has this as its port.
// Blocks: never; wait() makes the next event happen.
class Scheduler final : public kj::EventPort, public Clock {
 public:
  TimePoint now() const override { return now_; }

  // `process` may be null: an event of the world itself.
  uint64_t at(TimePoint time, const ProcessRef& process, std::function<void()> event);
  uint64_t after(Duration delay, const ProcessRef& process, std::function<void()> event) {
    return at(now_ + delay, process, std::move(event));
  }
  void cancel(uint64_t id);

  // A hash over all that has happened, and when: equal for equal runs.
  uint64_t hash() const { return hash_; }
  void mix(std::string_view text);
  uint64_t eventsDone() const { return events_done_; }

  bool wait() override;
  bool poll() override { return false; }

 private:
  struct Event {
    uint64_t id = 0;
    ProcessRef process;
    std::function<void()> run;
  };
  using Key = std::pair<TimePoint, uint64_t>;

  TimePoint now_{Duration(1'000'000'000)};
  uint64_t order_ = 0;
  uint64_t next_id_ = 1;
  std::map<Key, Event> queue_;
  std::unordered_map<uint64_t, Key> keys_;
  uint64_t hash_ = 0xcbf29ce484222325;
  uint64_t events_done_ = 0;
};

// kj's timers of one process.
// Borrows: `scheduler` (must outlive this and every promise made here).
class SimTimer final : public kj::Timer {
 public:
  SimTimer(Scheduler& scheduler, ProcessRef process)
      : scheduler_(scheduler), process_(std::move(process)) {}
  kj::TimePoint now() const override;
  kj::Promise<void> atTime(kj::TimePoint time) override;
  kj::Promise<void> afterDelay(kj::Duration delay) override;

 private:
  Scheduler& scheduler_;
  const ProcessRef process_;
};

}  // namespace dtf::sim
