#include "launcher/run_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <string>

#include "common/base/error.h"

namespace dtf::launcher {

constexpr std::chrono::seconds kSoon{20};

TEST(RunProgram, GivesTheInputAndReturnsBothStreamsAndTheCode) {
  const ProgramAnswer answer = runProgram({"sh", "-c", "cat; echo no >&2; exit 3"}, "yes\n", kSoon);
  EXPECT_EQ(answer.out, "yes\n");
  EXPECT_EQ(answer.err, "no\n");
  EXPECT_EQ(answer.status.code, 3);
}

TEST(RunProgram, OneThatDoesNotReadItsInputSaysSoByItsCode) {
  const std::string much(kProgramInputBytesMax, 'x');
  EXPECT_EQ(runProgram({"sh", "-c", "exit 4"}, much, kSoon).status.code, 4);
}

// Signal dispositions belong to the process: a library must not change them, even to write to a
// pipe without a reader.
TEST(RunProgram, LeavesTheSignalsOfTheProcessAsTheyAre) {
  const std::string much(kProgramInputBytesMax, 'x');
  const auto before = std::signal(SIGPIPE, SIG_DFL);
  sigset_t mask_before;
  ::pthread_sigmask(SIG_SETMASK, nullptr, &mask_before);
  EXPECT_EQ(runProgram({"sh", "-c", "exec 0<&-; echo closed; exit 4"}, much, kSoon).status.code, 4);
  struct sigaction pipe {
  }, child{};
  ::sigaction(SIGPIPE, nullptr, &pipe);
  ::sigaction(SIGCHLD, nullptr, &child);
  EXPECT_EQ(pipe.sa_handler, SIG_DFL);
  EXPECT_EQ(child.sa_handler, SIG_DFL);
  sigset_t mask, pending;
  ::pthread_sigmask(SIG_SETMASK, nullptr, &mask);
  ::sigpending(&pending);
  EXPECT_EQ(::sigismember(&mask, SIGPIPE), ::sigismember(&mask_before, SIGPIPE));
  EXPECT_EQ(::sigismember(&pending, SIGPIPE), 0);
  std::signal(SIGPIPE, before);
}

TEST(RunProgram, WhatItHasLeftBehindIsNotWaitedFor) {
  const ProgramAnswer answer = runProgram({"sh", "-c", "echo 42; sleep 60 &"}, "", kSoon);
  EXPECT_EQ(answer.out, "42\n");
  EXPECT_TRUE(answer.status.success());
}

TEST(RunProgram, OneThatDoesNotEndIsKilled) {
  try {
    runProgram({"sh", "-c", "echo $$ >&2; sleep 1000"}, "", std::chrono::milliseconds(100));
    FAIL() << "it has ended";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kDeadline);
    EXPECT_STREQ(error.what(), "sh has not answered within 0.1 s");
  }
}

TEST(RunProgram, WhatIsNoAnswerEndsIt) {
  try {
    runProgram({"sh", "-c", "yes"}, "", kSoon);
    FAIL() << "it has ended";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBadData);
  }
}

TEST(RunProgram, OneThatIsNotThereIsNamed) {
  try {
    runProgram({"no-such-program"}, "", kSoon);
    FAIL() << "there is one";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBadConfig);
    EXPECT_THAT(error.what(), ::testing::HasSubstr("no-such-program"));
  }
}

}  // namespace dtf::launcher
