#include "launcher/ssh/sha256.h"

#include <gtest/gtest.h>

namespace dtf::launcher {

// FIPS 180-2, appendix B.
TEST(Sha256, GivesTheStandardsDigestsAndBeginsAnew) {
  Sha256 sha256;
  sha256.update("a");
  sha256.update("bc");
  EXPECT_EQ(sha256.finish(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256.finish(), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

TEST(Sha256, WhatIsNoDigestIsNoFilesName) {
  EXPECT_TRUE(isSha256(std::string(64, 'a')));
  EXPECT_FALSE(isSha256(std::string(63, 'a')));
  EXPECT_FALSE(isSha256(std::string(64, 'A')));
  EXPECT_FALSE(isSha256("../" + std::string(61, 'a')));
}

}  // namespace dtf::launcher
