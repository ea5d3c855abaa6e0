#pragma once

// Which CPU a thread is on, and moves of it by another thread that waits for it.

#include <sched.h>
#include <time.h>

#include <atomic>
#include <cstdint>
#include <optional>

namespace dtf {

// One thread's. Linux balances load over many milliseconds, and leaves two threads that wait for
// each other on one CPU while a neighbour keeps the other CPU to itself; whoever waits knows
// better.
//
// A move binds the thread to some CPUs until the next leave(). A thread whose CPUs somebody else
// has set since begin() (taskset) is left alone, also when it is moved just then. After its first
// move a thread no longer follows a cpuset that grows beyond the CPUs of begin(); nothing undoes
// that. Where the host forbids moves (EPERM), none is tried again.
//
// Threads: begin(), enter() and leave() are the thread's own; all others any one thread's at a
// time, while the thread lives. A thread that hasn't begun is left alone.
// Blocks: moveFrom() and moveTo() until Linux has moved it, some 10 us.
class ThreadCpu {
 public:
  // First, once: notes who the thread is, and which CPUs it may use.
  void begin();
  // Around work that others wait for. Some nanoseconds; leave() of a thread that was moved some
  // microseconds.
  void enter();
  void leave();

  // Where it last began, entered or left; -1 if it was moved since.
  int cpu() const { return cpu_.load(std::memory_order_relaxed); }
  // Between enter() and leave().
  bool isWithin() const { return within_.load(); }
  // The CPU time that it has used, in nanoseconds, also if it runs at this moment.
  std::optional<int64_t> cpuTime() const;

  // A thread that isn't within: off these CPUs, to any other that it may use. False where there is
  // none, or it was left alone.
  bool moveFrom(const cpu_set_t& cpus);
  // A thread that is within, if it still is: to this CPU. False where it may not use that, or was
  // left alone.
  bool moveTo(int cpu);

 private:
  void look();
  bool move(const cpu_set_t& cpus);
  void moveBack();

  cpu_set_t allowed_ = {};  // at begin()
  clockid_t clock_ = 0;
  std::atomic<pid_t> thread_{0};  // 0 before begin(); publishes what is above
  std::atomic<int> cpu_{-1};
  // Each work writes it: on a line of its own. With moved_ sequentially consistent: of a move and a
  // leave() at the same time one sees the other.
  alignas(64) std::atomic<bool> within_{false};
  std::atomic<uint64_t> moved_{0};  // digest of the CPUs that a move has set; 0: none
  bool forbidden_ = false;          // the movers'
};

// Of the calling thread.
int currentCpu();

// Neither does anything, nor is true, for -1 and a CPU that no set has room for.
void addCpu(int cpu, cpu_set_t& cpus);
bool hasCpu(int cpu, const cpu_set_t& cpus);

}  // namespace dtf
