#include "launcher/run_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
