#include "launcher/ssh/sent_keys.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>

#include "common/base/error.h"
#include "common/base/file.h"
#include "common/net/key_folder.h"
#include "tests/support/process.h"

namespace dtf::launcher {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class SentKeysTest : public ::testing::Test {
 protected:
  SentKeysTest() {
    for (const char* task : {"ps/0", "ps/1", "worker/0"}) keys_.issue(task, "", {});
  }
  static std::vector<std::string> namesOf(const SentFiles& files) {
    std::vector<std::string> names;
    for (const auto& file : files) names.push_back(file.first.filename());
    return names;
  }
  // Returns the time of the next check of the files.
  TimePoint next() { return now_ += SentKeys::kLookEvery; }

  const testing::TemporaryFolder folder_;
  const fs::path path_ = fs::path(folder_.path()) / "keys";
  net::KeyFolder keys_ = net::KeyFolder::create(path_, "mnist", {});
  SentKeys sent_{path_, "mnist", {{JobKind::kPs, 0}, {JobKind::kWorker, 0}}};
  TimePoint now_{};
};

TEST_F(SentKeysTest, AHostGetsTheKeysOfItsOwnTasks) {
  EXPECT_THAT(namesOf(sent_.read()), ElementsAre("ca.pem", "ps-0.pem", "worker-0.pem"));
  EXPECT_TRUE(SentKeys({}, "mnist", {{JobKind::kPs, 0}}).read().empty());
}

TEST_F(SentKeysTest, WhatWasRenewedIsSentOnce) {
  const SentFiles first = sent_.read();
  EXPECT_TRUE(sent_.renewed(next()).empty());
  keys_.issue("ps/1", "", {});
  EXPECT_TRUE(sent_.renewed(next()).empty()) << "it is another host's";
  keys_.issue("ps/0", "", {});
  const SentFiles renewed = sent_.renewed(next());
  EXPECT_THAT(namesOf(renewed), ElementsAre("ps-0.pem"));
  EXPECT_NE(renewed.begin()->second, first.at(path_ / "ps-0.pem"));
  EXPECT_EQ(renewed.begin()->second, readFile(path_ / "ps-0.pem", 64 << 10));
  EXPECT_TRUE(sent_.renewed(next()).empty());
}

TEST_F(SentKeysTest, TheFilesAreLookedAtEverySoOften) {
  sent_.read();
  EXPECT_TRUE(sent_.renewed(next()).empty());
  keys_.issue("ps/0", "", {});
  EXPECT_TRUE(sent_.renewed(now_ + SentKeys::kLookEvery / 2).empty());
  EXPECT_EQ(sent_.renewed(next()).size(), 1u);
}

TEST_F(SentKeysTest, AKeyThatIsNoGoodIsSaidSoOnceAndNotSent) {
  sent_.read();
  fs::permissions(path_ / "ps-0.pem", fs::perms(0644));
  try {
    sent_.renewed(next());
    FAIL() << "it is sent";
  } catch (const Error& error) {
    EXPECT_THAT(error.message(), HasSubstr("can be read by others"));
  }
  EXPECT_TRUE(sent_.renewed(next()).empty()) << "nothing has changed since";
  keys_.issue("ps/0", "", {});
  EXPECT_THAT(namesOf(sent_.renewed(next())), ElementsAre("ps-0.pem"));
}

}  // namespace
}  // namespace dtf::launcher
