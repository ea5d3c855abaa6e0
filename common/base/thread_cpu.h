#pragma once

// Which CPU a thread is on, and moves of it by another thread that waits for it.

#include <sched.h>
#include <time.h>

#include <atomic>

namespace dtf {

// One thread's. The kernel balances load over many milliseconds, and leaves two threads that wait for each
// other on one CPU while a neighbour keeps the other CPU to itself; whoever waits knows better. A move is a
// hint that lasts until the thread calls release(): a host that forbids it keeps the thread where it is. A thread
// whose CPUs somebody else has changed since begin() (taskset) is never moved.
//
// Threads: begin(), look() and release() are the thread's own; the others any one thread's at a time, after
// begin(), while the thread lives. Moves of a thread that never began do nothing.
// Blocks: moveFrom() and moveTo() until the kernel has moved it, some 10 us; isStalled() for 5 us.
class ThreadCpu {
 public:
  void begin();
  // Notes the CPU that it is on; some nanoseconds.
  void look();
  // Looks; and if it was moved, it may run again on every CPU that it could at begin().
  void release();

  // Where it last looked; -1 if it hasn't since it was moved.
  int cpu() const { return cpu_.load(std::memory_order_relaxed); }
  // Whether it uses no CPU time, because it sleeps or the kernel keeps it waiting.
  bool isStalled() const;
  // Off these CPUs, to any other that it may use. False where there is none, or it was left alone.
  bool moveFrom(const cpu_set_t& cpus);
  // To this CPU. False if it may not use that, or was left alone.
  bool moveTo(int cpu);

 private:
  bool move(const cpu_set_t& cpus);

  cpu_set_t allowed_ = {};        // at begin()
  clockid_t clock_ = 0;           // of the CPU time that it uses
  std::atomic<pid_t> thread_{0};  // 0 before begin(); publishes what is above
  std::atomic<int> cpu_{-1};
  std::atomic<bool> moved_{false};
};

// Of the calling thread.
int currentCpu();

// Does nothing for a CPU that no set has room for, or -1.
void addCpu(int cpu, cpu_set_t& cpus);

}  // namespace dtf
