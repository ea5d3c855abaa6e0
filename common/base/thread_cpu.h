#pragma once

// The CPU of a thread, and moves of a thread by another thread that waits for it.

#include <sched.h>
#include <time.h>

#include <atomic>
#include <cstdint>
#include <optional>

namespace dtf {

// The placement of one thread. Linux balances load over many milliseconds. It leaves two threads
// that wait for each other on one CPU, while a neighbour keeps the other CPU to itself; the waiting
// thread knows better.
// //
// A move binds the thread to some CPUs until the next leave(). A thread whose CPUs were set by
// anything else since begin() (taskset) is left alone. After its first move a thread no longer
// follows a cpuset that grows beyond the CPUs of begin(). If the host forbids moves (EPERM), no
// more are tried.
// //
// Threads: begin(), enter() and leave() belong to the thread itself; all others to any one thread
// at a time, while the thread lives. A thread that hasn't begun is left alone.
// Blocks: moveFrom() and moveTo() until Linux has moved it, about 10 us.
class ThreadCpu {
 public:
  // Records the thread and the CPUs it may use. Call it first, once.
  void begin();
  // Enclose work that other threads wait for. They take nanoseconds; leave() takes microseconds
  // after a move.
  void enter();
  void leave();

  // The CPU of the last begin(), enter() or leave(); -1 if the thread was moved since.
  int cpu() const { return cpu_.load(std::memory_order_relaxed); }
  // Between enter() and leave().
  bool isWithin() const { return within_.load(); }
  // The CPU time used so far, in nanoseconds, even while the thread runs.
  std::optional<int64_t> cpuTime() const;

  // Moves a thread that is not within work off these CPUs, to any other that it may use. Returns
  // false if there is none, or if the thread was left alone.
  bool moveFrom(const cpu_set_t& cpus);
  // Moves a thread that is still within work to this CPU. Returns false if it may not use that CPU,
  // or was left alone.
  bool moveTo(int cpu);

 private:
  void look();
  bool move(const cpu_set_t& cpus);
  void moveBack();

  cpu_set_t allowed_ = {};  // at begin()
  clockid_t clock_ = 0;
  std::atomic<pid_t> thread_{0};  // 0 before begin(); publishes the members above
  std::atomic<int> cpu_{-1};
  // Written on every enter() and leave(): on its own cache line. Sequentially consistent with
  // moved_: if a move and a leave() coincide, one sees the other.
  alignas(64) std::atomic<bool> within_{false};
  std::atomic<uint64_t> moved_{0};  // digest of the CPUs set by a move; 0 if none
  bool forbidden_ = false;          // used by movers only
};

// Returns the CPU of the calling thread.
int currentCpu();

// Both ignore -1 and a CPU that no set has room for; hasCpu() then returns false.
void addCpu(int cpu, cpu_set_t& cpus);
bool hasCpu(int cpu, const cpu_set_t& cpus);

}  // namespace dtf
