#pragma once

// The threads that compute the kernels of one device together. One call splits a kernel's work into
// parts, the calling thread takes part, and the call returns when all parts are done. The split is
// decided in processor.h.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include "common/base/thread.h"
#include "common/base/thread_cpu.h"

namespace dtf::runtime {

// Every thread starts with its own share, as the data is still in its caches, and continues with
// parts that others haven't begun. A thread that the host keeps waiting delays the call only by its
// current part, and a sleeping thread not at all. If neighbours compete for the CPUs, the caller
// keeps the pool's threads on separate CPUs. Before it hands out work, it moves a thread that was
// last on the caller's CPU, or on another thread's, to a free CPU. If a thread is stalled within a
// part, because the host runs another process on its CPU, the caller moves it to its own CPU, and
// sleeps.
// //
// Owns: threads() - 1 threads, named "compute-<n>" with n from 1; 0 is the caller.
// Threads: one thread at a time calls run(), not from within a part.
// Blocks: run(), until all parts are done. A waiting thread spins briefly, then sleeps.
// Errors: the constructor throws kUnavailable if the host gives fewer threads; a part must not
// throw.
class ComputePool {
 public:
  // Longer than the gaps between kernels of a step, and than the update of a small network between
  // two steps. Shorter than a turn of the host's scheduler, so that a neighbour that needs the core
  // gets it. A thread that sleeps on a virtual core can take hundreds of microseconds to wake.
  static constexpr std::chrono::microseconds kSpin{200};

  // The interval in which the spinning caller looks for a stalled thread, one that has used no CPU
  // time since the last look.
  static constexpr std::chrono::microseconds kLook{25};

  // `threads` includes the caller, at least 1; `spin`: the longest time of spinning before sleep.
  explicit ComputePool(int threads, std::chrono::microseconds spin = kSpin);
  ~ComputePool();
  ComputePool(const ComputePool&) = delete;
  ComputePool& operator=(const ComputePool&) = delete;

  int threads() const { return static_cast<int>(shares_.size()); }

  // Calls f(part, thread) for every part in [0, parts), concurrently on different threads; `thread`
  // is in [0, threads()). Parts see all earlier writes of the caller, and the caller sees the
  // parts' writes. Allocates nothing.
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
    int sharers = 1;  // threads that start with a share
  };

  // The state of one thread, on separate cache lines: counting in one must not stop the others.
  struct Share {
    alignas(64) std::atomic<int> unclaimed{0};     // unclaimed parts; below 0 after failed claims
    alignas(64) std::atomic<uint32_t> summons{0};  // the thread wakes when this changes
    alignas(64) ThreadCpu cpu;
    alignas(64) std::optional<int64_t> cpu_time;  // CPU time at the caller's last look
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
  const bool moves_threads_;          // there is a CPU for each thread
  std::atomic<int> unfinished_{0};    // parts of the job
  std::atomic<bool> running_{false};  // a call of run()
  std::atomic<bool> stopping_{false};
  // Written while no part is unclaimed, read by threads with a claim.
  Job job_;
  std::vector<Thread> threads_;
};

}  // namespace dtf::runtime
