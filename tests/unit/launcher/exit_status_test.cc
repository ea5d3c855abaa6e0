#include "launcher/exit_status.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "common/base/error.h"

namespace dtf::launcher {

namespace {

// Returns the status of a child that calls `end`.
template <class End>
ExitStatus statusOfChild(End end) {
  const pid_t child = ::fork();
  if (child == 0) {
    end();
    ::_exit(99);
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return ExitStatus::fromWait(status);
}

}  // namespace

TEST(ExitStatus, IsWhatTheKernelSaysOfAChild) {
  EXPECT_EQ(statusOfChild([] { ::_exit(0); }), (ExitStatus{0, 0}));
  EXPECT_EQ(statusOfChild([] { ::_exit(65); }), (ExitStatus{65, 0}));
  EXPECT_EQ(statusOfChild([] { ::raise(SIGKILL); }), (ExitStatus{0, SIGKILL}));
}

TEST(ExitStatus, OnlyCode0IsSuccessAndASignalHasAShellsCode) {
  EXPECT_TRUE((ExitStatus{0, 0}).success());
  EXPECT_FALSE((ExitStatus{1, 0}).success());
  EXPECT_FALSE((ExitStatus{0, SIGTERM}).success()) << "its code is 0, too";
  EXPECT_TRUE((ExitStatus{0, SIGSEGV}).crashed());
  EXPECT_FALSE((ExitStatus{0, SIGTERM}).crashed() || (ExitStatus{0, SIGKILL}).crashed());
  EXPECT_FALSE((ExitStatus{70, 0}).crashed());
  EXPECT_EQ((ExitStatus{65, 0}).shellCode(), 65);
  EXPECT_EQ((ExitStatus{0, SIGTERM}).shellCode(), 143);
  EXPECT_EQ((ExitStatus{.signal = SIGKILL, .lost_host = "node2"}).shellCode(), 69)
      << "nobody has killed it: its host is unavailable";
}

TEST(ExitStatus, TextHasTheWordOfAKnownCodeAndTheNameOfTheSignal) {
  EXPECT_EQ((ExitStatus{65, 0}).text(), "exited with code 65 (bad_data)");
  EXPECT_EQ((ExitStatus{42, 0}).text(), "exited with code 42");
  EXPECT_EQ((ExitStatus{0, SIGSEGV}).text(), "was killed by SIGSEGV (signal 11)");
  EXPECT_EQ((ExitStatus{0, SIGBUS}).text(),
            "was killed by SIGBUS (signal 7), as when a data file is truncated while it is read");
  EXPECT_EQ(signalName(SIGRTMIN + 1), "signal " + std::to_string(SIGRTMIN + 1)) << "has no name";
}

TEST(ExitStatus, EveryErrorCodeHasItsWordAndBack) {
  for (const ErrorCode code :
       {ErrorCode::kUsage, ErrorCode::kBadData, ErrorCode::kUnavailable, ErrorCode::kInternal,
        ErrorCode::kCannotWrite, ErrorCode::kPermission, ErrorCode::kBadConfig})
    EXPECT_EQ(exitCodeOfWord(exitCodeWord(exitCode(code))), exitCode(code)) << errorCodeName(code);
  EXPECT_EQ(exitCodeWord(0), "");
  EXPECT_EQ(exitCodeOfWord("a word of a newer version"), 1);
  EXPECT_EQ(exitCodeOfWord(""), 1);
}

}  // namespace dtf::launcher
