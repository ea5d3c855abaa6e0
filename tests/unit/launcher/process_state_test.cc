#include "launcher/process_state.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>

#include "tests/support/another_user.h"

namespace dtf::launcher {

namespace {

// A child that waits for signals, under a name that looks like the fields of /proc/PID/stat.
class Child {
 public:
  Child() : pid_(::fork()) {
    if (pid_ != 0) return;
    ::prctl(PR_SET_NAME, "a) T (b");
    for (;;) ::pause();
  }
  ~Child() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  pid_t pid() const { return pid_; }
  void signal(int number, int wait_options) const {
    ::kill(pid_, number);
    EXPECT_EQ(::waitpid(pid_, nullptr, wait_options), pid_);
  }

 private:
  const pid_t pid_;
};

}  // namespace

TEST(ProcessState, KnowsASuspendedProcessWhateverItsName) {
  const Child child;
  EXPECT_FALSE(isSuspended(child.pid()));
  child.signal(SIGSTOP, WUNTRACED);
  EXPECT_TRUE(isSuspended(child.pid()));
  child.signal(SIGCONT, WCONTINUED);
  EXPECT_FALSE(isSuspended(child.pid()));
}

TEST(ProcessState, AProcessOfAnotherUserIsOutOfReachOfAllButRoot) {
  EXPECT_FALSE(isOutOfReach(::getpid()));
  if (!testing::mayBecomeAnotherUser()) GTEST_SKIP() << "only root can become another user";
  const pid_t ours = ::getpid();
  const testing::AnotherUser nobody([ours](int tell) {
    const bool seen[] = {isOutOfReach(ours), isOutOfReach(::getpid())};
    (void)!::write(tell, seen, sizeof seen);
  });
  const auto seen = nobody.told<std::array<bool, 2>>();
  EXPECT_TRUE(seen[0]);
  EXPECT_FALSE(seen[1]) << "its own";
}

}  // namespace dtf::launcher
