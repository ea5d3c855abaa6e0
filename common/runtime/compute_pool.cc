#include "common/runtime/compute_pool.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <system_error>

#include "common/base/check.h"
#include "common/base/cores.h"
#include "common/base/error.h"

namespace dtf::runtime {
namespace {

constexpr int kSpinsBetweenLooks = 32;  // between two looks at the clock

void pauseBriefly() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// Spins until `done(value)` is true or `time` has passed; returns whether it is true.
template <class T, class Done>
bool spinFor(const std::atomic<T>& word, std::chrono::microseconds time, const Done& done) {
  const auto end = std::chrono::steady_clock::now() + time;
  do {
    for (int i = 0; i < kSpinsBetweenLooks; ++i) {
      if (done(word.load(std::memory_order_acquire))) return true;
      pauseBriefly();
    }
  } while (std::chrono::steady_clock::now() < end);
  return false;
}

// Sleeps until `done(value)`.
template <class T, class Done>
void sleepUntil(const std::atomic<T>& word, const Done& done) {
  for (;;) {
    const T value = word.load(std::memory_order_acquire);
    if (done(value)) return;
    word.wait(value, std::memory_order_acquire);
  }
}

// Returns the first part of a thread's share; it ends where the share of `thread` + 1 begins.
int shareBegin(int parts, int sharers, int thread) {
  return static_cast<int>(int64_t{parts} * thread / sharers);
}

size_t checkedCount(int threads) {
  DTF_CHECK_MSG(threads >= 1, std::to_string(threads));
  return static_cast<size_t>(threads);
}

}  // namespace

ComputePool::ComputePool(int threads, std::chrono::microseconds spin)
    : shares_(checkedCount(threads)),
      spin_(spin),
      moves_threads_(threads > 1 && threads <= availableCores()) {
  threads_.reserve(shares_.size() - 1);
  try {
    for (int thread = 1; thread < threads; ++thread) {
      threads_.emplace_back("compute-" + std::to_string(thread), [this, thread] { work(thread); });
    }
  } catch (const Error& error) {
    const size_t made = threads_.size();
    end();
    throw Error(ErrorCode::kUnavailable,
                "this host gives " + std::to_string(made + 1) + " of " + std::to_string(threads) +
                    " threads to compute on (" + error.message() +
                    "): set 'threads' of the worker, or --threads, to fewer");
  }
}

ComputePool::~ComputePool() {
  DTF_CHECK_MSG(!running_.load(), "a pool ends while it computes");
  end();
}

void ComputePool::end() {
  stopping_.store(true, std::memory_order_release);
  for (int thread = 1; thread <= static_cast<int>(threads_.size()); ++thread) summon(thread);
  for (Thread& thread : threads_) thread.join();
  threads_.clear();
}

void ComputePool::summon(int thread) {
  DTF_CHECK(thread > 0 && thread < threads());
  std::atomic<uint32_t>& summons = shares_[static_cast<size_t>(thread)].summons;
  summons.fetch_add(1, std::memory_order_release);
  summons.notify_one();
}

void ComputePool::work(int thread) {
  Share& share = shares_[static_cast<size_t>(thread)];
  if (moves_threads_) share.cpu.begin();
  uint32_t seen = 0;
  for (;;) {
    const auto is_summoned = [seen](uint32_t value) { return value != seen; };
    if (!spinFor(share.summons, spin_, is_summoned)) sleepUntil(share.summons, is_summoned);
    seen = share.summons.load(std::memory_order_acquire);
    if (stopping_.load(std::memory_order_acquire)) return;
    runWhatIsLeft(thread);
  }
}

// Runs the thread's own share, then parts of the following threads. A claimed part keeps the job
// alive, so it may be read then. A late claim takes a part of the next job, which is just as good.
void ComputePool::runWhatIsLeft(int thread) {
  const auto count = static_cast<size_t>(threads());
  Share& share = shares_[static_cast<size_t>(thread)];
  int done = 0;
  for (size_t i = 0; i < count; ++i) {
    const size_t of = (static_cast<size_t>(thread) + i) % count;
    std::atomic<int>& unclaimed = shares_[of].unclaimed;
    while (unclaimed.load(std::memory_order_relaxed) > 0) {
      const int left = unclaimed.fetch_sub(1, std::memory_order_acq_rel);
      if (left <= 0) break;
      const int part = shareBegin(job_.parts, job_.sharers, static_cast<int>(of) + 1) - left;
      DTF_CHECK(part >= 0 && part < job_.parts);
      share.cpu.enter();
      job_.call(job_.function, part, thread);
      share.cpu.leave();
      ++done;
    }
  }
  if (done == 0) return;
  const int before = unfinished_.fetch_sub(done, std::memory_order_acq_rel);
  DTF_CHECK(before >= done);
  if (before == done && thread != 0) unfinished_.notify_one();
}

// Wakes the sharers. If another thread needs its last CPU, a thread is moved first.
void ComputePool::summonSharers() {
  cpu_set_t taken;
  CPU_ZERO(&taken);
  const int own = moves_threads_ && job_.sharers > 1 ? currentCpu() : -1;
  addCpu(own, taken);
  for (int thread = 1; thread < job_.sharers; ++thread) {
    const int cpu = shares_[static_cast<size_t>(thread)].cpu.cpu();
    if (hasCpu(cpu, taken)) moveOff(thread, own);
    addCpu(cpu, taken);
    summon(thread);
  }
}

// Moves a thread to a CPU that no thread of the pool used, or at least away from the caller's CPU
// `own`.
void ComputePool::moveOff(int thread, int own) {
  ThreadCpu& moved = shares_[static_cast<size_t>(thread)].cpu;
  const bool is_with_caller = moved.cpu() == own;
  cpu_set_t taken;
  CPU_ZERO(&taken);
  addCpu(own, taken);
  for (const Share& share : shares_) addCpu(share.cpu.cpu(), taken);
  if (moved.moveFrom(taken) || !is_with_caller) return;
  CPU_ZERO(&taken);
  addCpu(own, taken);
  moved.moveFrom(taken);
}

void ComputePool::awaitAll() {
  const auto is_over = [](int value) { return value == 0; };
  if (is_over(unfinished_.load(std::memory_order_acquire))) return;
  const auto end = std::chrono::steady_clock::now() + spin_;
  bool first_look = true;
  while (std::chrono::steady_clock::now() < end) {
    if (spinFor(unfinished_, std::min(kLook, spin_), is_over)) return;
    if (moves_threads_ && moveStalled(first_look)) break;
    first_look = false;
  }
  sleepUntil(unfinished_, is_over);
}

// Moves one stalled thread to this CPU, which can serve no more. Returns true if one has moved and
// so needs this CPU.
bool ComputePool::moveStalled(bool first_look) {
  for (size_t thread = 1; thread < shares_.size(); ++thread) {
    Share& share = shares_[thread];
    const auto before = first_look ? std::nullopt : share.cpu_time;
    share.cpu_time = share.cpu.isWithin() ? share.cpu.cpuTime() : std::nullopt;
    if (!before || share.cpu_time != before) continue;
    if (share.cpu.moveTo(currentCpu())) return true;
  }
  return false;
}

void ComputePool::runParts(Job job) {
  DTF_CHECK_MSG(job.parts >= 0, std::to_string(job.parts));
  DTF_CHECK_MSG(!running_.exchange(true, std::memory_order_acquire),
                "two callers of one pool, or one from within a part");
  job.sharers = std::clamp(job.parts, 1, threads());
  DTF_CHECK(unfinished_.load(std::memory_order_relaxed) == 0);
  job_ = job;
  unfinished_.store(job.parts, std::memory_order_relaxed);
  for (int thread = 0; thread < job.sharers; ++thread) {
    const int share =
        shareBegin(job.parts, job.sharers, thread + 1) - shareBegin(job.parts, job.sharers, thread);
    shares_[static_cast<size_t>(thread)].unclaimed.store(share, std::memory_order_release);
  }
  summonSharers();
  runWhatIsLeft(0);
  awaitAll();
  running_.store(false, std::memory_order_release);
}

}  // namespace dtf::runtime
