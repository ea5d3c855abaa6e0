#include "launcher/ssh/host_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "common/base/error.h"
#include "tests/support/process.h"

namespace dtf::launcher {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class HostFilesTest : public ::testing::Test {
 protected:
  HostFiles within(const HostFilesLimits& limits) {
    return {writer_, [this](const std::string& text) { told_.push_back(text); }, limits};
  }
  std::string text(const std::string& name) const {
    std::ifstream in(fs::path(folder_.path()) / name);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  const testing::TemporaryFolder folder_;
  const RunFilesWriter writer_{folder_.path()};
  std::vector<std::string> told_;
};

TEST_F(HostFilesTest, AFileThatDoesNotFitCostsThatFileAlone) {
  HostFiles files = within({});
  files.take("a", {"events/1", 0, "one"});
  files.take("a", {"events/1", 7, "misfit"});
  files.take("a", {"events/1", 3, " more"});
  files.take("a", {"events/2", 0, "two"});
  files.take("b", {"events/3", 0, "three"});
  EXPECT_EQ(text("events/1"), "one") << "nothing is put behind a gap";
  EXPECT_EQ(text("events/2"), "two");
  EXPECT_EQ(text("events/3"), "three");
  EXPECT_THAT(told_, ElementsAre(HasSubstr("warning: events/1 of a is not copied")));
  files.take("a", {"events/1", 0, "anew"});
  EXPECT_EQ(text("events/1"), "anew");
}

TEST_F(HostFilesTest, AHostHasItsBytesAndNotThoseOfTheOthers) {
  HostFiles files = within({.bytes_max = 10});
  files.take("a", {"events/1", 0, "123456"});
  files.take("a", {"events/1", 6, "7890"});
  files.take("a", {"events/2", 0, "1"});
  files.take("b", {"events/3", 0, "1234567890"});
  EXPECT_EQ(text("events/1"), "1234567890");
  EXPECT_FALSE(fs::exists(fs::path(folder_.path()) / "events/2"));
  EXPECT_EQ(text("events/3"), "1234567890");
  EXPECT_THAT(told_, ElementsAre(HasSubstr("events/2 of a")));
  files.take("a", {"events/1", 0, "12"});  // shorter, so there is room again
  files.take("a", {"events/2", 0, "1"});
  EXPECT_EQ(text("events/2"), "1");
  files.take("a", {"events/2", ~uint64_t{0} - 1, "12"});
  EXPECT_EQ(text("events/2"), "1");
}

TEST_F(HostFilesTest, AHostHasSoManyFilesAndSaysSoOnce) {
  HostFiles files = within({.files_max = 2});
  for (int i = 0; i < 50; ++i) files.take("a", {"events/" + std::to_string(i), 0, "x"});
  files.take("b", {"events/b", 0, "x"});
  EXPECT_EQ(std::distance(fs::directory_iterator(fs::path(folder_.path()) / "events"), {}), 3);
  EXPECT_THAT(
      told_,
      ElementsAre(HasSubstr("a file of a is not copied to this host: it has more than 2 files")));
}

TEST_F(HostFilesTest, AFloodOfMisfitsIsAFewWords) {
  HostFiles files = within({.words_max = 3});
  for (int i = 0; i < 50; ++i) files.take("a", {"events/" + std::to_string(i), 5, "x"});
  ASSERT_EQ(told_.size(), 3u);
  EXPECT_THAT(told_.back(), HasSubstr("no more is reported of that host's files"));
}

TEST_F(HostFilesTest, AFileIsThatOfTheHostThatSentItFirst) {
  HostFiles files = within({});
  files.take("a", {"events/1", 0, "of a"});
  files.take("b", {"events/1", 0, "of b"});
  EXPECT_EQ(text("events/1"), "of a");
  EXPECT_TRUE(told_.empty()) << "hosts may share a disk";
}

TEST_F(HostFilesTest, WhatMayNotTravelIsRefused) {
  HostFiles files = within({});
  EXPECT_THROW(files.take("a", {"../x", 0, "x"}), Error);
}

}  // namespace
}  // namespace dtf::launcher
