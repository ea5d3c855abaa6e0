#include "common/runtime/compute_pool.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <system_error>

#include "common/base/check.h"
#include "common/base/error.h"

namespace dtf::runtime {
namespace {

constexpr int kSpinsBetweenLooks = 32;  // at the clock

void pauseBriefly() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// Until `done(value)`: spins, then sleeps. Returns the value.
template <class T, class Done>
T await(const std::atomic<T>& word, std::chrono::microseconds spin, const Done& done) {
  const auto end = std::chrono::steady_clock::now() + spin;
  do {
    for (int i = 0; i < kSpinsBetweenLooks; ++i) {
      const T value = word.load(std::memory_order_acquire);
      if (done(value)) return value;
      pauseBriefly();
    }
  } while (std::chrono::steady_clock::now() < end);
  for (;;) {
    const T value = word.load(std::memory_order_acquire);
    if (done(value)) return value;
    word.wait(value, std::memory_order_acquire);
  }
}

// The first part of a thread's share; that of `thread` + 1 is its end.
int shareBegin(int parts, int sharers, int thread) {
  return static_cast<int>(int64_t{parts} * thread / sharers);
}

size_t checkedCount(int threads) {
  DTF_CHECK_MSG(threads >= 1, std::to_string(threads));
  return static_cast<size_t>(threads);
}

}  // namespace

ComputePool::ComputePool(int threads, std::chrono::microseconds spin)
    : shares_(checkedCount(threads)), spin_(spin) {
  threads_.reserve(shares_.size() - 1);
  try {
    for (int thread = 1; thread < threads; ++thread) {
      threads_.emplace_back("compute-" + std::to_string(thread), [this, thread] { work(thread); });
    }
  } catch (const std::system_error& error) {
    const size_t made = threads_.size();
    end();
    throw Error(ErrorCode::kUnavailable,
                "this host gives " + std::to_string(made + 1) + " of " + std::to_string(threads) +
                    " threads to compute on (" + error.code().message() +
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
  const std::atomic<uint32_t>& summons = shares_[static_cast<size_t>(thread)].summons;
  uint32_t seen = 0;
  for (;;) {
    seen = await(summons, spin_, [seen](uint32_t value) { return value != seen; });
    if (stopping_.load(std::memory_order_acquire)) return;
    runWhatIsLeft(thread);
  }
}

// Its own share, then those of the threads behind it. Whoever claims a part holds the job where it is,
// so it may be read then; a claim that comes late is one of the next job, and as good.
void ComputePool::runWhatIsLeft(int thread) {
  const auto count = static_cast<size_t>(threads());
  int done = 0;
  for (size_t i = 0; i < count; ++i) {
    const size_t of = (static_cast<size_t>(thread) + i) % count;
    std::atomic<int>& unclaimed = shares_[of].unclaimed;
    while (unclaimed.load(std::memory_order_relaxed) > 0) {
      const int left = unclaimed.fetch_sub(1, std::memory_order_acq_rel);
      if (left <= 0) break;
      const int part = shareBegin(job_.parts, job_.sharers, static_cast<int>(of) + 1) - left;
      DTF_CHECK(part >= 0 && part < job_.parts);
      job_.call(job_.function, part, thread);
      ++done;
    }
  }
  if (done == 0) return;
  const int before = unfinished_.fetch_sub(done, std::memory_order_acq_rel);
  DTF_CHECK(before >= done);
  if (before == done && thread != 0) unfinished_.notify_one();
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
  for (int thread = 1; thread < job.sharers; ++thread) summon(thread);
  runWhatIsLeft(0);
  await(unfinished_, spin_, [](int value) { return value == 0; });
  running_.store(false, std::memory_order_release);
}

}  // namespace dtf::runtime
