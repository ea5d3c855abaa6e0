#include "common/base/thread_cpu.h"

#include <pthread.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "common/base/check.h"

namespace dtf {
namespace {

bool fits(int cpu) {
  return cpu >= 0 && cpu < CPU_SETSIZE;
}

// Returns the FNV-1a hash of the words; never 0.
uint64_t digestOf(const cpu_set_t& cpus) {
  uint64_t words[sizeof(cpu_set_t) / sizeof(uint64_t)];
  std::memcpy(words, &cpus, sizeof words);
  uint64_t digest = 0xcbf29ce484222325;
  for (const uint64_t word : words) digest = (digest ^ word) * 0x100000001b3;
  return digest == 0 ? 1 : digest;
}

}  // namespace

int currentCpu() {
  return ::sched_getcpu();
}

void addCpu(int cpu, cpu_set_t& cpus) {
  if (fits(cpu)) CPU_SET(static_cast<size_t>(cpu), &cpus);
}

bool hasCpu(int cpu, const cpu_set_t& cpus) {
  return fits(cpu) && CPU_ISSET(static_cast<size_t>(cpu), &cpus);
}

void ThreadCpu::begin() {
  DTF_CHECK_MSG(thread_.load() == 0, "begins twice");
  // It fails if the host has more CPUs than a set has room for; then no thread is moved.
  if (::sched_getaffinity(0, sizeof allowed_, &allowed_) != 0) return;
  if (::pthread_getcpuclockid(::pthread_self(), &clock_) != 0) return;
  look();
  thread_.store(::gettid(), std::memory_order_release);
}

// Writes the shared cache line only if the value changed.
void ThreadCpu::look() {
  const int cpu = currentCpu();
  if (cpu != cpu_.load(std::memory_order_relaxed)) cpu_.store(cpu, std::memory_order_relaxed);
}

void ThreadCpu::enter() {
  look();
  within_.store(true, std::memory_order_relaxed);
}

void ThreadCpu::leave() {
  DTF_CHECK(within_.load(std::memory_order_relaxed));
  look();
  within_.store(false);
  if (moved_.load() != 0) moveBack();
}

std::optional<int64_t> ThreadCpu::cpuTime() const {
  timespec time{};
  if (thread_.load(std::memory_order_acquire) == 0 || ::clock_gettime(clock_, &time) != 0)
    return std::nullopt;
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
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
  if (!move(one)) return false;
  if (within_.load()) return true;
  moveBack();
  return false;
}

bool ThreadCpu::move(const cpu_set_t& cpus) {
  if (forbidden_ || CPU_COUNT(&cpus) == 0) return false;
  const pid_t thread = thread_.load(std::memory_order_relaxed);
  cpu_set_t now;
  if (::sched_getaffinity(thread, sizeof now, &now) != 0) return false;
  const uint64_t moved = moved_.load();
  if (moved == 0 ? !CPU_EQUAL(&now, &allowed_) : moved != digestOf(now)) return false;
  if (::sched_setaffinity(thread, sizeof cpus, &cpus) != 0) {
    forbidden_ = errno == EPERM || errno == ENOSYS;
    return false;
  }
  cpu_.store(-1, std::memory_order_relaxed);
  moved_.store(digestOf(cpus));
  return true;
}

// Called by the thread, and by a mover that came too late; concurrent calls are harmless.
void ThreadCpu::moveBack() {
  const uint64_t moved = moved_.exchange(0);
  const pid_t thread = thread_.load(std::memory_order_relaxed);
  cpu_set_t now;
  if (moved == 0 || ::sched_getaffinity(thread, sizeof now, &now) != 0) return;
  if (moved == digestOf(now)) ::sched_setaffinity(thread, sizeof allowed_, &allowed_);
}

}  // namespace dtf
