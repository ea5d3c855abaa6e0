#pragma once

// The threads that compute the kernels of one device together: one call splits a kernel's work into
// parts, the calling thread takes part, and the call returns when all parts are done. It doesn't
// decide what is split, nor where: see processor.h.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include "common/base/thread.h"
#include "common/base/thread_cpu.h"

namespace dtf::runtime {

// Every thread begins with a share of its own, so that it finds in its caches what it left there,
// and goes on with what others haven't begun: a thread that the host keeps waiting delays
// the call by no more than the part that it is at, and one that sleeps on by nothing. Where
// neighbours compete for the CPUs, the caller sees to it that the threads of the pool don't share
// one: before it hands out work, it moves a thread that was last on the caller's CPU, or on another
// thread's, to a CPU of its own; and a thread that is stalled within a part, because the host runs
// somebody else on its CPU, to the caller's CPU, and sleeps.
//
// Owns: threads() - 1 threads, called "compute-<n>"; n is from 1, as 0 is the caller.
// Threads: one thread at a time calls run(), and not from within a part.
// Blocks: run(), until all parts are done. Whoever waits spins for a while at most, then sleeps.
// Errors: the constructor's kUnavailable, when the host gives fewer threads; a part must not throw.
class ComputePool {
 public:
  // Longer than what lies between the kernels of a step, and than the update of a small network
  // between two steps; shorter than a turn of the host's scheduler: a neighbour that wants the core
  // gets it. A thread that sleeps on a virtual core can take hundreds of microseconds to wake.
  static constexpr std::chrono::microseconds kSpin{200};

  // How often the caller looks, while it spins, for a thread that is stalled: has used no CPU time
  // since the last look.
  static constexpr std::chrono::microseconds kLook{25};

  // `threads` with the caller, at least 1; `spin`: for how long one that waits spins, at most.
  explicit ComputePool(int threads, std::chrono::microseconds spin = kSpin);
  ~ComputePool();
  ComputePool(const ComputePool&) = delete;
  ComputePool& operator=(const ComputePool&) = delete;

  int threads() const { return static_cast<int>(shares_.size()); }

  // f(part, thread) for every part in [0, parts), at the same time for those of different threads;
  // `thread` is in [0, threads()). What the caller wrote before, the parts see, and the other way
  // round. Allocates nothing.
  template <class F>
  void run(int parts, const F& f) {
    const auto call = [](const void* function, int part, int thread) noexcept {
      (*static_cast<const F*>(function))(part, thread);
    };
    runParts({call, &f, parts});
  }

 private:
  struct Job {
    void (*call)(const void* function, int part, int thread) noexcept = nullptr;
    const void* function = nullptr;
    int parts = 0;
    int sharers = 1;  // threads that begin with a share
  };

  // One thread's. On lines of their own: what one thread counts must not stop the others.
  struct Share {
    alignas(64) std::atomic<int> unclaimed{0};     // parts; below 0 when somebody asked in vain
    alignas(64) std::atomic<uint32_t> summons{0};  // the thread wakes when it changes
    alignas(64) ThreadCpu cpu;
    alignas(64) std::optional<int64_t> cpu_time;  // the caller's, at its last look
  };

  void end();
  void runParts(Job job);
  void work(int thread);
  void runWhatIsLeft(int thread);
  void summon(int thread);
  void summonSharers();
  void moveOff(int thread, int own);
  void awaitAll();
  bool moveStalled(bool first_look);

  std::vector<Share> shares_;  // by thread
  const std::chrono::microseconds spin_;
  const bool moves_threads_;          // each of them can have a CPU
  std::atomic<int> unfinished_{0};    // parts of the job
  std::atomic<bool> running_{false};  // a call of run()
  std::atomic<bool> stopping_{false};
  // Written while no part is unclaimed, read by who has claimed one.
  Job job_;
  std::vector<Thread> threads_;
};

}  // namespace dtf::runtime
