#include "launcher/group_guard.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <fstream>
#include <string>

namespace dtf::launcher {

namespace {

// A child that leads a group of its own, with a grandchild in it. Both hold the pipe open.
class Group {
 public:
  Group() {
    int ends[2];
    EXPECT_EQ(::pipe2(ends, 0), 0);
    held_ = Fd(ends[0]);
    const Fd holder(ends[1]);
    leader_ = ::fork();
    if (leader_ == 0) {
      ::setpgid(0, 0);
      ::fork();
      for (;;) ::pause();
    }
    ::setpgid(leader_, leader_);  // in both processes, as either may come first
  }
  ~Group() {
    ::kill(-leader_, SIGKILL);
    ::waitpid(leader_, nullptr, 0);
  }
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  pid_t leader() const { return leader_; }
  // Returns whether all its processes end within `timeout_ms`.
  bool gone(int timeout_ms) const {
    pollfd state{held_.get(), POLLIN, 0};
    return ::poll(&state, 1, timeout_ms) == 1;
  }

 private:
  Fd held_;
  pid_t leader_ = -1;
};

// Returns the guard among the children of a process, once it has left the parent's session.
pid_t guardOf(pid_t parent) {
  const std::string id = std::to_string(parent);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (std::chrono::steady_clock::now() < deadline) {
    std::ifstream children("/proc/" + id + "/task/" + id + "/children");
    for (pid_t child = 0; children >> child;) {
      std::string name;
      std::getline(std::ifstream("/proc/" + std::to_string(child) + "/comm"), name);
      if (name == "dtf-guard") return child;
    }
    ::sched_yield();
  }
  ADD_FAILURE() << "no guard";
  return -1;
}

}  // namespace

TEST(GroupGuard, WhatIsLeftIsKilledWithTheLauncher) {
  const Group kept, released;
  {
    GroupGuard guard;
    guard.add(kept.leader());
    guard.add(released.leader());
    guard.remove(released.leader());
    EXPECT_FALSE(kept.gone(0)) << "not as long as the launcher lives";
  }
  EXPECT_TRUE(kept.gone(30'000)) << "its grandchild too";
  EXPECT_FALSE(released.gone(0));
}

// For example because a terminal is closed, or a user kills the launcher's whole group.
TEST(GroupGuard, OutlivesTheLaunchersGroup) {
  const Group kept;
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const Fd told(ends[0]);
  Fd tells(ends[1]);
  const pid_t launcher = ::fork();
  if (launcher == 0) {
    ::setpgid(0, 0);
    GroupGuard guard;
    guard.add(kept.leader());
    const char added = 1;
    if (::write(tells.get(), &added, 1) != 1) ::_exit(1);
    for (;;) ::pause();
  }
  tells.reset();
  char added = 0;
  ASSERT_EQ(::read(told.get(), &added, 1), 1) << "the launcher ended before it named its group";
  const pid_t guard = guardOf(launcher);
  ASSERT_GT(guard, 0);
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) ::kill(guard, number);
  ::kill(-launcher, SIGKILL);
  EXPECT_EQ(::waitpid(launcher, nullptr, 0), launcher);
  EXPECT_TRUE(kept.gone(30'000));
}

TEST(GroupGuard, OneThatSomebodyKilledCostsNothingButItsService) {
  ::signal(SIGPIPE, SIG_IGN);  // as in dtf-launch
  const Group group;
  GroupGuard guard;
  const pid_t process = guardOf(::getpid());
  ASSERT_GT(process, 0);
  ::kill(process, SIGKILL);
  siginfo_t ended{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(process), &ended, WEXITED | WNOWAIT), 0);
  guard.add(group.leader());
  guard.remove(group.leader());
  EXPECT_FALSE(group.gone(0));
}

}  // namespace dtf::launcher
