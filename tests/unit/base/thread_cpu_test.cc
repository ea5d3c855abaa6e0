#include "common/base/thread_cpu.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <set>

#include "common/base/thread.h"

namespace dtf {
namespace {

std::set<int> cpusOf(pid_t thread) {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  EXPECT_EQ(::sched_getaffinity(thread, sizeof cpus, &cpus), 0);
  std::set<int> all;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(static_cast<size_t>(cpu), &cpus)) all.insert(cpu);
  return all;
}

cpu_set_t only(int cpu) {
  cpu_set_t one;
  CPU_ZERO(&one);
  addCpu(cpu, one);
  return one;
}

// What moveFrom() leaves: all, where there is one alone.
std::set<int> without(int cpu, std::set<int> cpus) {
  if (cpus.size() > 1) cpus.erase(cpu);
  return cpus;
}

// A thread that is told what to do: it sleeps, or spins, and releases itself.
class MovedThread {
 public:
  MovedThread() { begun_.wait(false); }
  ~MovedThread() { tell(kEnd); }

  ThreadCpu cpu;
  pid_t id() const { return id_; }
  void spin() { tell(kSpin); }
  void release() {
    tell(kRelease);
    told_.wait(kRelease);
  }

 private:
  enum Order { kSleep, kSpin, kRelease, kEnd };

  void tell(Order order) {
    told_ = order;
    told_.notify_all();
  }
  void run() {
    id_ = ::gettid();
    cpu.begin();
    begun_ = true;
    begun_.notify_all();
    for (Order order = told_; order != kEnd; order = told_) {
      if (order == kSleep) told_.wait(kSleep);
      if (order != kRelease) continue;
      cpu.release();
      tell(kSleep);
    }
  }

  std::atomic<pid_t> id_{0};
  std::atomic<bool> begun_{false};
  std::atomic<Order> told_{kSleep};
  Thread thread_{"moved", [this] { run(); }};
};

bool becomesStalled(const ThreadCpu& cpu, bool stalled) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (cpu.isStalled() != stalled)
    if (std::chrono::steady_clock::now() > end) return false;
  return true;
}

TEST(ThreadCpu, MovesAThreadOffACpuUntilItIsReleased) {
  MovedThread thread;
  const std::set<int> all = cpusOf(thread.id());
  const int cpu = thread.cpu.cpu();
  ASSERT_TRUE(all.contains(cpu));
  EXPECT_EQ(thread.cpu.moveFrom(only(cpu)), all.size() > 1);
  EXPECT_EQ(cpusOf(thread.id()), without(cpu, all));
  thread.release();
  EXPECT_EQ(cpusOf(thread.id()), all);
  EXPECT_TRUE(all.contains(thread.cpu.cpu()));
}

TEST(ThreadCpu, MovesAThreadToACpuUntilItIsReleased) {
  MovedThread thread;
  const std::set<int> all = cpusOf(thread.id());
  for (const int cpu : all) {
    EXPECT_TRUE(thread.cpu.moveTo(cpu));
    EXPECT_EQ(cpusOf(thread.id()), std::set<int>{cpu});
    EXPECT_EQ(thread.cpu.cpu(), -1) << "where it was is no longer where it is";
  }
  thread.cpu.moveFrom(only(*all.begin()));
  EXPECT_EQ(cpusOf(thread.id()), without(*all.begin(), all)) << "a move may follow a move";
  thread.release();
  EXPECT_EQ(cpusOf(thread.id()), all);
}

TEST(ThreadCpu, WhereNoCpuIsLeftItStays) {
  MovedThread thread;
  const std::set<int> all = cpusOf(thread.id());
  cpu_set_t taken;
  CPU_ZERO(&taken);
  for (const int cpu : all) addCpu(cpu, taken);
  EXPECT_FALSE(thread.cpu.moveFrom(taken));
  EXPECT_EQ(cpusOf(thread.id()), all);
}

TEST(ThreadCpu, ACpuThatTheThreadMayNotUseChangesNothing) {
  MovedThread thread;
  const std::set<int> all = cpusOf(thread.id());
  for (const int cpu : {-1, *all.rbegin() + 1, CPU_SETSIZE - 1, CPU_SETSIZE}) {
    if (all.contains(cpu)) continue;
    EXPECT_FALSE(thread.cpu.moveTo(cpu)) << cpu;
    thread.cpu.moveFrom(only(cpu));
    EXPECT_EQ(cpusOf(thread.id()), all) << cpu;
  }
}

TEST(ThreadCpu, WhatSomebodyElseHasSetStays) {
  MovedThread thread;
  const std::set<int> all = cpusOf(thread.id());
  const cpu_set_t one = only(*all.begin());
  ASSERT_EQ(::sched_setaffinity(thread.id(), sizeof one, &one), 0);
  thread.cpu.moveFrom(one);
  thread.cpu.moveTo(*all.rbegin());
  thread.release();
  EXPECT_EQ(cpusOf(thread.id()), std::set<int>{*all.begin()});
}

TEST(ThreadCpu, AThreadThatSleepsIsStalledOneThatRunsIsNot) {
  MovedThread thread;
  EXPECT_TRUE(becomesStalled(thread.cpu, true));
  thread.spin();
  EXPECT_TRUE(becomesStalled(thread.cpu, false));
}

TEST(ThreadCpu, AThreadThatHasNotBegunIsLeftAlone) {
  ThreadCpu none;
  const std::set<int> all = cpusOf(0);
  EXPECT_FALSE(none.moveFrom(only(currentCpu())));
  EXPECT_FALSE(none.moveTo(currentCpu()));
  EXPECT_FALSE(none.isStalled());
  EXPECT_EQ(none.cpu(), -1);
  EXPECT_EQ(cpusOf(0), all);
}

}  // namespace
}  // namespace dtf
