#include "common/base/run_registry.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "common/base/error.h"
#include "tests/support/process.h"

namespace dtf {

namespace fs = std::filesystem;

class RunRegistryTest : public ::testing::Test {
 protected:
  fs::path made(const std::string& name) const {
    fs::create_directories(base() / name);
    return base() / name;
  }
  fs::path base() const { return folder_.path(); }

  testing::TemporaryFolder folder_;
  RunRegistry registry_{base() / "registry"};
};

TEST_F(RunRegistryTest, FindsTheRunsOfAFileNewestFirst) {
  EXPECT_TRUE(registry_.runsOf("/a.yaml", "job").empty());
  registry_.remember({"/a.yaml", made("one"), "job"});
  registry_.remember({"/a.yaml", made("two"), "job"});
  registry_.remember({"/b.yaml", made("three"), "job"});
  registry_.remember({"/a.yaml", made("four"), "other"});
  const auto past = fs::file_time_type::clock::now() - std::chrono::hours(1);
  for (const auto& entry : fs::directory_iterator(base() / "registry"))
    fs::last_write_time(entry.path(), past);
  registry_.remember({"/a.yaml", base() / "one", "job"});
  const auto runs = registry_.runsOf("/a.yaml", "job");
  ASSERT_EQ(runs.size(), 2u) << "one entry a run directory and file";
  EXPECT_EQ(runs[0].run_dir, base() / "one");
  EXPECT_EQ(runs[1].run_dir, base() / "two");
}

TEST_F(RunRegistryTest, AFileStillFindsADirectoryThatAnotherOneHasTakenOver) {
  const std::string first = folder_.write("first.yaml", "");
  const std::string second = folder_.write("second.yaml", "");
  EXPECT_FALSE(registry_.lastIn(made("run")).has_value());
  registry_.remember({first, base() / "run", "job"});
  const auto past = fs::file_time_type::clock::now() - std::chrono::hours(1);
  for (const auto& entry : fs::directory_iterator(base() / "registry"))
    fs::last_write_time(entry.path(), past);
  registry_.remember({second, base() / "run", "job"});
  EXPECT_EQ(registry_.runsOf(first, "job").size(), 1u);
  EXPECT_EQ(registry_.runsOf(second, "job").size(), 1u);
  EXPECT_EQ(registry_.lastIn(base() / "run").value().cluster_file, second);
  fs::remove(first);
  registry_.remember({second, base() / "run", "job"});
  EXPECT_TRUE(registry_.runsOf(first, "job").empty()) << "nobody can ask for it";
}

TEST_F(RunRegistryTest, ForgetsRunDirectoriesThatAreGone) {
  registry_.remember({"/a.yaml", made("gone"), "job"});
  fs::remove(base() / "gone");
  EXPECT_TRUE(registry_.runsOf("/a.yaml", "job").empty());
  registry_.remember({"/a.yaml", made("new"), "job"});
  EXPECT_EQ(std::distance(fs::directory_iterator(base() / "registry"), {}), 1);
}

// atomicReplace() of another launch: its file has the entry's name and more.
TEST_F(RunRegistryTest, LeavesTheFileAloneThatAnotherLaunchIsWriting) {
  registry_.remember({"/a.yaml", made("one"), "job"});
  const fs::path other = base() / "registry" / "0123456789abcdef.tmp.77";
  fs::copy_file(fs::directory_iterator(base() / "registry")->path(), other);
  EXPECT_EQ(registry_.runsOf("/a.yaml", "job").size(), 1u);
  fs::resize_file(other, 3);
  registry_.remember({"/a.yaml", made("two"), "job"});
  EXPECT_TRUE(fs::exists(other));
}

TEST_F(RunRegistryTest, RefusesAFolderThatOthersCanWriteTo) {
  made("registry");
  ::chmod((base() / "registry").c_str(), 0777);
  try {
    registry_.remember({"/a.yaml", made("one"), "job"});
    FAIL() << "must throw";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kPermission);
  }
}

TEST_F(RunRegistryTest, RefusesALinkInThePlaceOfItsFolder) {
  fs::create_directory_symlink(made("elsewhere"), base() / "registry");
  EXPECT_THROW(registry_.remember({"/a.yaml", made("one"), "job"}), Error);
}

TEST_F(RunRegistryTest, ListsTheRunsOfAllFilesAndMakesTheFoldersAroundItsOwn) {
  RunRegistry deep(base() / "state/dtf/runs");
  EXPECT_TRUE(deep.all().empty());
  deep.remember({"/a.yaml", made("one"), "job"});
  const auto past = fs::file_time_type::clock::now() - std::chrono::hours(1);
  for (const auto& entry : fs::directory_iterator(base() / "state/dtf/runs"))
    fs::last_write_time(entry.path(), past);
  deep.remember({"/b.yaml", made("two"), "other"});
  const std::vector<KnownRun> runs = deep.all();
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_EQ(runs[0].job, "other") << "the newest first";
  EXPECT_EQ(runs[1].run_dir, base() / "one");
  EXPECT_EQ(fs::status(base() / "state").permissions(), fs::perms::owner_all);
}

TEST_F(RunRegistryTest, DropsTheOldestEntriesBeyondItsBound) {
  registry_.remember({"/a.yaml", made("oldest"), "job"});
  const fs::path oldest = fs::directory_iterator(base() / "registry")->path();
  const auto now = fs::file_time_type::clock::now();
  for (size_t i = 0; i < RunRegistry::kEntriesMax - 1; ++i) {
    char name[17];
    std::snprintf(name, sizeof name, "%016zx", i + 1);
    fs::copy_file(oldest, base() / "registry" / name);
    fs::last_write_time(base() / "registry" / name, now - std::chrono::minutes(i));
  }
  fs::last_write_time(oldest, now - std::chrono::hours(10'000));
  registry_.remember({"/b.yaml", made("newest"), "job"});
  EXPECT_FALSE(fs::exists(oldest));
  const auto entries = std::distance(fs::directory_iterator(base() / "registry"), {});
  EXPECT_EQ(static_cast<size_t>(entries), RunRegistry::kEntriesMax);
  EXPECT_EQ(registry_.all().front().run_dir, base() / "newest");
}

class HistoryFolderTest : public ::testing::Test {
 protected:
  HistoryFolderTest() {
    ::setenv("XDG_RUNTIME_DIR", folder_.path().c_str(), 1);
    ::unsetenv("XDG_STATE_HOME");
  }
  ~HistoryFolderTest() override {
    ::unsetenv("XDG_RUNTIME_DIR");
    ::unsetenv("XDG_STATE_HOME");
    home_.empty() ? ::unsetenv("HOME") : ::setenv("HOME", home_.c_str(), 1);
  }

  const std::string home_ = std::getenv("HOME") == nullptr ? "" : std::getenv("HOME");
  testing::TemporaryFolder folder_;
};

TEST_F(HistoryFolderTest, IsBelowTheHomeOfThisUserOrWhereTheVariableSays) {
  ::setenv("HOME", folder_.path().c_str(), 1);
  EXPECT_EQ(RunRegistry::historyFolder(), fs::path(folder_.path()) / ".local/state/dtf/runs");
  const std::string somewhere = folder_.path() + "/some/where";
  ::setenv("XDG_STATE_HOME", somewhere.c_str(), 1);
  EXPECT_EQ(RunRegistry::historyFolder(), somewhere + "/dtf/runs");
  ::setenv("XDG_STATE_HOME", "relative", 1);
  ::setenv("HOME", (folder_.path() + "/none").c_str(), 1);
  EXPECT_EQ(RunRegistry::historyFolder(), std::nullopt);
  ::unsetenv("HOME");
  EXPECT_EQ(RunRegistry::historyFolder(), std::nullopt);
}

TEST_F(HistoryFolderTest, ARunIsRegisteredInBothAndAFailureIsAWarning) {
  ::setenv("XDG_STATE_HOME", (folder_.path() + "/state").c_str(), 1);
  EXPECT_EQ(registerRun({"/a.yaml", folder_.path(), "job"}), "");
  EXPECT_EQ(RunRegistry().all().size(), 1u);
  EXPECT_EQ(RunRegistry(RunRegistry::historyFolder().value()).all().size(), 1u);
  ::setenv("XDG_STATE_HOME", folder_.write("file", "").c_str(), 1);
  EXPECT_NE(registerRun({"/b.yaml", folder_.path(), "job"}).find("only until the next login"),
            std::string::npos);
}

}  // namespace dtf
