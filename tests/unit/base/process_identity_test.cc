#include "common/base/process_identity.h"

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

namespace dtf {
namespace {

TEST(ProcessIdentity, IsThatOfOneProcess) {
  const ProcessIdentity own = identityOf(::getpid());
  EXPECT_EQ(own, identityOf(::getpid()));
  EXPECT_FALSE(own.host.empty());
  EXPECT_FALSE(own.boot.empty());
  EXPECT_GT(own.start_ticks, 0);
  EXPECT_EQ(identityOf(1).boot, own.boot);
}

// Under a name that looks like the fields behind it.
TEST(ProcessIdentity, ANameMayHoldAnything) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::prctl(PR_SET_NAME, "a) S 1 2 3 (b");
    for (;;) ::pause();
  }
  EXPECT_GE(identityOf(child).start_ticks, identityOf(::getpid()).start_ticks);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(identityOf(child).start_ticks, 0) << "it is gone";
  EXPECT_FALSE(isSameProcess(child, 0));
}

TEST(ProcessIdentity, ANumberThatWasGivenAgainIsAnotherProcess) {
  const int64_t began = identityOf(::getpid()).start_ticks;
  EXPECT_TRUE(isSameProcess(::getpid(), began));
  EXPECT_TRUE(isSameProcess(::getpid(), 0)) << "not known when it began";
  EXPECT_TRUE(isSameProcess(1, 0)) << "of whichever user";
  EXPECT_FALSE(isSameProcess(::getpid(), began + 1));
  EXPECT_FALSE(isSameProcess(0, 0)) << "0 and below are groups";
  EXPECT_FALSE(isSameProcess(-1, 0));
}

TEST(ProcessIdentity, AnotherHostHasAnotherBootAndAnotherName) {
  ProcessIdentity identity = identityOf(::getpid());
  EXPECT_EQ(otherHost(identity), "");
  identity.boot = "another";
  EXPECT_EQ(otherHost(identity), "") << "this one, before it was started again";
  identity.host = "far";
  EXPECT_EQ(otherHost(identity), "far");
  EXPECT_EQ(otherHost({}), "") << "not known";
}

}  // namespace
}  // namespace dtf
