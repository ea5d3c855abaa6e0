#include "launcher/systemd/unit_keys.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "common/net/key_folder.h"
#include "tests/support/process.h"

namespace dtf::launcher {
namespace {

namespace fs = std::filesystem;

class UnitKeysTest : public ::testing::Test {
 protected:
  UnitKeysTest() { keys_.issue("ps/0", "", {}); }
  SentKeys sent() const { return {path_, "mnist", {{JobKind::kPs, 0}}}; }
  // Returns the time of the next check of the files.
  TimePoint next() { return now_ += SentKeys::kLookEvery; }

  const testing::TemporaryFolder folder_;
  const fs::path path_ = fs::path(folder_.path()) / "keys";
  net::KeyFolder keys_ = net::KeyFolder::create(path_, "mnist", {});
  TimePoint now_{};
};

TEST_F(UnitKeysTest, WhoFollowsAJobSendsWhatIsRenewedSince) {
  UnitKeys keys(sent(), true);
  EXPECT_TRUE(keys.due(next()).empty());
  keys_.issue("ps/0", "", {});
  EXPECT_EQ(keys.due(next()).size(), 1u);
  keys.taken();
  EXPECT_TRUE(keys.due(next()).empty());
}

TEST_F(UnitKeysTest, WhatAHostRefusesIsDueAgainLater) {
  UnitKeys keys(sent(), false);
  EXPECT_EQ(keys.read().size(), 2u);
  keys_.issue("ps/0", "", {});
  EXPECT_EQ(keys.due(next()).size(), 1u);
  EXPECT_TRUE(keys.refused(now_)) << "to be told";
  EXPECT_TRUE(keys.due(now_ + SentKeys::kLookEvery / 2).empty());
  EXPECT_EQ(keys.due(next()).size(), 1u);
  EXPECT_FALSE(keys.refused(now_)) << "it was told";
  EXPECT_EQ(keys.due(next()).size(), 1u);
  keys.taken();
  EXPECT_TRUE(keys.due(next()).empty());
  EXPECT_TRUE(keys.refused(now_)) << "anew";
}

}  // namespace
}  // namespace dtf::launcher
