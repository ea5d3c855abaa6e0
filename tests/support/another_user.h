#pragma once

// Another user of this host, for tests that run as root: a child process with another user id.

#include <grp.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

#include "common/base/file.h"

namespace dtf::testing {

inline constexpr uid_t kNobody = 65534;

// For SetUp(), which skips the test if it returns false.
inline bool mayBecomeAnotherUser() {
  return ::geteuid() == 0;
}

// Runs `act` as nobody, in a process that then waits until this is destroyed. It is forked, so
// `act` may only make system calls, none that wait for a lock of another thread. Owns: the child,
// two pipes.
class AnotherUser {
 public:
  explicit AnotherUser(const std::function<void(int tell)>& act) {
    int to_child[2], to_parent[2];
    EXPECT_EQ(::pipe(to_child), 0);
    EXPECT_EQ(::pipe(to_parent), 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::close(to_child[1]);
      if (::setgroups(0, nullptr) != 0 || ::setgid(kNobody) != 0 || ::setuid(kNobody) != 0)
        ::_exit(1);
      act(to_parent[1]);
      char byte;
      (void)!::read(to_child[0], &byte, 1);
      ::_exit(0);
    }
    ::close(to_child[0]);
    ::close(to_parent[1]);
    hold_ = Fd(to_child[1]);
    told_ = Fd(to_parent[0]);
  }
  ~AnotherUser() {
    hold_ = Fd();
    ::waitpid(pid_, nullptr, 0);
  }
  AnotherUser(const AnotherUser&) = delete;
  AnotherUser& operator=(const AnotherUser&) = delete;

  // Returns whether `act` has written to `tell`.
  bool hasTold() const {
    pollfd readable{told_.get(), POLLIN, 0};
    return ::poll(&readable, 1, 0) == 1;
  }
  // Returns the value that `act` wrote. Blocks until then.
  template <class T>
  T told() const {
    T value{};
    EXPECT_EQ(::read(told_.get(), &value, sizeof value), static_cast<ssize_t>(sizeof value));
    return value;
  }

 private:
  pid_t pid_ = -1;
  Fd hold_, told_;
};

}  // namespace dtf::testing
