#include "common/base/thread_cpu.h"

#include <pthread.h>
#include <unistd.h>

#include <chrono>

#include "common/base/check.h"

namespace dtf {
namespace {

// A thread that runs has used some of it.
constexpr std::chrono::microseconds kStallLooks{5};

}  // namespace

int currentCpu() {
  return ::sched_getcpu();
}

void addCpu(int cpu, cpu_set_t& cpus) {
  if (cpu >= 0 && cpu < CPU_SETSIZE) CPU_SET(static_cast<size_t>(cpu), &cpus);
}

void ThreadCpu::begin() {
  DTF_CHECK_MSG(thread_.load() == 0, "begins twice");
  // It fails where there are more CPUs than a set has room for: there, nothing is moved.
  if (::sched_getaffinity(0, sizeof allowed_, &allowed_) != 0) return;
  if (::pthread_getcpuclockid(::pthread_self(), &clock_) != 0) return;
  look();
  thread_.store(::gettid(), std::memory_order_release);
}

void ThreadCpu::look() {
  const int cpu = currentCpu();
  if (cpu != cpu_.load(std::memory_order_relaxed)) cpu_.store(cpu, std::memory_order_relaxed);
}

// Whoever moves it says so after the move: what this misses, the next call does.
void ThreadCpu::release() {
  look();
  if (!moved_.load(std::memory_order_relaxed)) return;
  moved_.store(false, std::memory_order_relaxed);
  ::sched_setaffinity(0, sizeof allowed_, &allowed_);
}

bool ThreadCpu::isStalled() const {
  if (thread_.load(std::memory_order_acquire) == 0) return false;
  timespec before{}, after{};
  if (::clock_gettime(clock_, &before) != 0) return false;
  const auto end = std::chrono::steady_clock::now() + kStallLooks;
  while (std::chrono::steady_clock::now() < end) {
  }
  return ::clock_gettime(clock_, &after) == 0 && before.tv_sec == after.tv_sec &&
         before.tv_nsec == after.tv_nsec;
}

bool ThreadCpu::moveFrom(const cpu_set_t& cpus) {
  if (thread_.load(std::memory_order_acquire) == 0) return false;
  cpu_set_t both, others;
  CPU_AND(&both, &allowed_, &cpus);
  CPU_XOR(&others, &allowed_, &both);
  return move(others);
}

bool ThreadCpu::moveTo(int cpu) {
  if (thread_.load(std::memory_order_acquire) == 0) return false;
  cpu_set_t one;
  CPU_ZERO(&one);
  addCpu(cpu, one);
  CPU_AND(&one, &one, &allowed_);
  return move(one);
}

bool ThreadCpu::move(const cpu_set_t& cpus) {
  if (CPU_COUNT(&cpus) == 0) return false;
  const pid_t thread = thread_.load(std::memory_order_relaxed);
  if (!moved_.load(std::memory_order_relaxed)) {
    cpu_set_t now;
    if (::sched_getaffinity(thread, sizeof now, &now) != 0 || !CPU_EQUAL(&now, &allowed_))
      return false;
  }
  cpu_.store(-1, std::memory_order_relaxed);
  if (::sched_setaffinity(thread, sizeof cpus, &cpus) != 0) return false;
  moved_.store(true, std::memory_order_relaxed);
  return true;
}

}  // namespace dtf
