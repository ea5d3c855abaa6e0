#pragma once

// Mutex, MutexLock and CondVar: std's, carrying Clang's thread-safety attributes, so that
// `-Wthread-safety` checks which lock guards which member.
// https://clang.llvm.org/docs/ThreadSafetyAnalysis.html

#include <chrono>
#include <condition_variable>
#include <mutex>

#if defined(__clang__)
#define DTF_TSA(x) __attribute__((x))
#else
#define DTF_TSA(x)
#endif
#define DTF_CAPABILITY(x) DTF_TSA(capability(x))
#define DTF_SCOPED_CAPABILITY DTF_TSA(scoped_lockable)
#define DTF_GUARDED_BY(x) DTF_TSA(guarded_by(x))
#define DTF_REQUIRES(...) DTF_TSA(requires_capability(__VA_ARGS__))
#define DTF_EXCLUDES(...) DTF_TSA(locks_excluded(__VA_ARGS__))
#define DTF_ACQUIRE(...) DTF_TSA(acquire_capability(__VA_ARGS__))
#define DTF_TRY_ACQUIRE(...) DTF_TSA(try_acquire_capability(__VA_ARGS__))
#define DTF_RELEASE(...) DTF_TSA(release_capability(__VA_ARGS__))

namespace dtf {

// Thread-safe.
class DTF_CAPABILITY("mutex") Mutex {
 public:
  void lock() DTF_ACQUIRE() { mutex_.lock(); }
  bool tryLock() DTF_TRY_ACQUIRE(true) { return mutex_.try_lock(); }
  void unlock() DTF_RELEASE() { mutex_.unlock(); }

 private:
  friend class CondVar;
  std::mutex mutex_;
};

// Holds `mutex` for its own lifetime.
class DTF_SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) DTF_ACQUIRE(mutex) : mutex_(mutex) { mutex_.lock(); }
  ~MutexLock() DTF_RELEASE() { mutex_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

// Thread-safe. Wait in a loop that checks the condition: wake-ups may be spurious.
class CondVar {
 public:
  void wait(Mutex& mutex) DTF_REQUIRES(mutex) {
    std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
    cond_.wait(lock);
    lock.release();
  }
  // Returns false if `deadline` has passed.
  bool waitUntil(Mutex& mutex, std::chrono::steady_clock::time_point deadline) DTF_REQUIRES(mutex) {
    std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
    const bool in_time = cond_.wait_until(lock, deadline) == std::cv_status::no_timeout;
    lock.release();
    return in_time;
  }
  void notifyOne() { cond_.notify_one(); }
  void notifyAll() { cond_.notify_all(); }

 private:
  std::condition_variable cond_;
};

}  // namespace dtf
