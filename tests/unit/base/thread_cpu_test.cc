#include "common/base/thread_cpu.h"

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <iterator>
#include <optional>
#include <set>
#include <utility>

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

// The CPUs that remain after moveFrom(): all, if there is only one.
std::set<int> without(int cpu, std::set<int> cpus) {
  if (cpus.size() > 1) cpus.erase(cpu);
  return cpus;
}

// A thread that has entered at its start; it leaves, enters and spins on request.
class MovedThread {
 public:
  MovedThread() { done_.wait(false); }
  ~MovedThread() { tell(kEnd); }

  ThreadCpu cpu;
  pid_t id() const { return id_; }
  void spin() { tell(kSpin); }
  void leave() { tell(kLeave); }
  void enter() { tell(kEnter); }

 private:
  enum Order { kNone, kSpin, kLeave, kEnter, kEnd };

  void tell(Order order) {
    done_ = false;
    order_ = order;
    order_.notify_all();
    if (order != kSpin && order != kEnd) done_.wait(false);
  }
  void carryOut(Order order) {
    if (order == kLeave) cpu.leave();
    if (order == kEnter) cpu.enter();
    if (order == kSpin) return;
    order_ = kNone;
    done_ = true;
    done_.notify_all();
  }
  void run() {
    id_ = ::gettid();
    cpu.begin();
    carryOut(kEnter);
    for (Order order = order_; order != kEnd; order = order_) {
      if (order == kNone)
        order_.wait(kNone);
      else
        carryOut(order);
    }
  }

  std::atomic<pid_t> id_{0};
  std::atomic<bool> done_{false};
  std::atomic<Order> order_{kNone};
  Thread thread_{"moved", [this] { run(); }};
};

TEST(ThreadCpu, MovesAThreadToACpuUntilItLeaves) {
  MovedThread thread;
  const std::set<int> all = cpusOf(thread.id());
  for (const int cpu : all) {
    EXPECT_TRUE(thread.cpu.moveTo(cpu));
    EXPECT_EQ(cpusOf(thread.id()), std::set<int>{cpu});
    EXPECT_EQ(thread.cpu.cpu(), -1) << "where it was is no longer where it is";
  }
  thread.leave();
  EXPECT_EQ(cpusOf(thread.id()), all);
  EXPECT_EQ(thread.cpu.cpu(), *all.rbegin());
}

TEST(ThreadCpu, MovesAThreadOffACpuUntilItLeavesAgain) {
  MovedThread thread;
  thread.leave();
  const std::set<int> all = cpusOf(thread.id());
  const int cpu = thread.cpu.cpu();
  ASSERT_TRUE(all.contains(cpu));
  EXPECT_EQ(thread.cpu.moveFrom(only(cpu)), all.size() > 1);
  EXPECT_EQ(cpusOf(thread.id()), without(cpu, all));
  thread.enter();
  EXPECT_EQ(cpusOf(thread.id()), without(cpu, all));
  thread.leave();
  EXPECT_EQ(cpusOf(thread.id()), all);
}

TEST(ThreadCpu, AMoveToACpuThatComesTooLateIsUndone) {
  MovedThread thread;
  thread.leave();
  const std::set<int> all = cpusOf(thread.id());
  EXPECT_FALSE(thread.cpu.moveTo(*all.begin()));
  EXPECT_EQ(cpusOf(thread.id()), all);
}

TEST(ThreadCpu, WhereNoCpuIsLeftItStays) {
  MovedThread thread;
  const std::set<int> all = cpusOf(thread.id());
  cpu_set_t taken;
  CPU_ZERO(&taken);
  for (const int cpu : all) addCpu(cpu, taken);
  EXPECT_FALSE(thread.cpu.moveFrom(taken));
  for (const int cpu : {-1, *all.rbegin() + 1, CPU_SETSIZE - 1, CPU_SETSIZE}) {
    EXPECT_EQ(hasCpu(cpu, taken), all.contains(cpu));
    if (all.contains(cpu)) continue;
    EXPECT_FALSE(thread.cpu.moveTo(cpu)) << cpu;
  }
  EXPECT_EQ(cpusOf(thread.id()), all);
}

TEST(ThreadCpu, WhatSomebodyElseHasSetStays) {
  MovedThread thread;
  const std::set<int> all = cpusOf(thread.id());
  const auto set = [&](int cpu) {
    const cpu_set_t one = only(cpu);
    ASSERT_EQ(::sched_setaffinity(thread.id(), sizeof one, &one), 0);
  };
  set(*all.begin());
  EXPECT_EQ(thread.cpu.moveTo(*all.rbegin()), all.size() == 1);
  thread.leave();
  EXPECT_EQ(cpusOf(thread.id()), std::set<int>{*all.begin()});
}

TEST(ThreadCpu, WhatSomebodyElseSetsDuringAMoveStays) {
  MovedThread thread;
  const std::set<int> all = cpusOf(thread.id());
  if (all.size() < 2) GTEST_SKIP() << "needs two CPUs";
  ASSERT_TRUE(thread.cpu.moveTo(*all.begin()));
  const cpu_set_t one = only(*all.rbegin());
  ASSERT_EQ(::sched_setaffinity(thread.id(), sizeof one, &one), 0);
  EXPECT_FALSE(thread.cpu.moveTo(*all.begin()));
  thread.leave();
  EXPECT_EQ(cpusOf(thread.id()), std::set<int>{*all.rbegin()});
}

TEST(ThreadCpu, CpuTimeGrowsWhileAThreadRunsAndStandsStillWhileItSleeps) {
  MovedThread thread;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  // It goes to sleep soon.
  std::optional<int64_t> before, time = thread.cpu.cpuTime();
  do {
    before = std::exchange(time, thread.cpu.cpuTime());
    ASSERT_TRUE(time.has_value());
  } while (before != time && std::chrono::steady_clock::now() < end);
  EXPECT_EQ(before, time);
  thread.spin();
  while (thread.cpu.cpuTime() == time && std::chrono::steady_clock::now() < end) {
  }
  EXPECT_GT(thread.cpu.cpuTime(), time);
}

TEST(ThreadCpu, AThreadThatHasNotBegunIsLeftAlone) {
  ThreadCpu none;
  const std::set<int> all = cpusOf(0);
  EXPECT_FALSE(none.moveFrom(only(currentCpu())));
  EXPECT_FALSE(none.moveTo(currentCpu()));
  EXPECT_EQ(none.cpuTime(), std::nullopt);
  EXPECT_EQ(none.cpu(), -1);
  EXPECT_EQ(cpusOf(0), all);
}

// For example a container's runtime forbids them.
TEST(ThreadCpuDeathTest, WhereTheHostForbidsMovesTheThreadStays) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  const auto inChild = [] {
    sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_sched_setaffinity, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const sock_fprog program{std::size(rules), rules};
    if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
      std::_Exit(2);
    MovedThread thread;
    const int cpu = thread.cpu.cpu();
    bool moved = false;
    for (int i = 0; i < 2; ++i) moved |= thread.cpu.moveTo(currentCpu());
    thread.leave();
    std::_Exit(moved || cpu < 0 ? 3 : 0);
  };
  EXPECT_EXIT(inChild(), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace dtf
