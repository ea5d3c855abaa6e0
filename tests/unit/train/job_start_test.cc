#include "common/train/job_start.h"

#include <gtest/gtest.h>

#include "common/base/error.h"

namespace dtf::train {
namespace {

using Held = std::vector<checkpoint::HeldValues>;

constexpr checkpoint::HeldValues kNothing;
constexpr checkpoint::HeldValues kInitial{true, 0};
constexpr checkpoint::HeldValues kTrained{true, 77};

std::string refusal(const Held& held, std::optional<uint64_t> checkpoint_step) {
  try {
    decideStart(held, checkpoint_step);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBadData);
    return error.message();
  }
  return "";
}

TEST(JobStart, IsWhatAllPsSay) {
  EXPECT_EQ(decideStart({kNothing, kNothing}, std::nullopt), JobStart::kInitialise);
  EXPECT_EQ(decideStart({kNothing, kNothing}, 40), JobStart::kRestore);
  EXPECT_EQ(decideStart({kTrained, kTrained}, 40), JobStart::kContinue);
}

TEST(JobStart, WhatAChiefThatWasLostHadBegunIsDoneAgain) {
  EXPECT_EQ(decideStart({kInitial, kNothing}, std::nullopt), JobStart::kInitialise);
  EXPECT_EQ(decideStart({{true, 40}, kNothing}, 40), JobStart::kRestore);
}

TEST(JobStart, AModelIsNeverTornInSilence) {
  EXPECT_EQ(
      refusal({kTrained, kNothing}, std::nullopt),
      "ps/1 lost its values, and nothing holds them; add `checkpoint:` to the file, so that the "
      "next loss costs only some steps");
  const std::string back = refusal({kTrained, kNothing}, 40);
  EXPECT_TRUE(back.starts_with(
      "ps/1 lost its values: all go back 37 steps to the checkpoint of step 40. A ps that holds"))
      << back;
}

}  // namespace
}  // namespace dtf::train
