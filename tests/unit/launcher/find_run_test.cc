#include "launcher/find_run.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "common/base/error.h"
#include "common/base/run_lock.h"
#include "tests/support/process.h"

namespace dtf::launcher {

namespace fs = std::filesystem;

namespace {

// A cluster file with the run directory <folder>/here.
class FindRunTest : public ::testing::Test {
 protected:
  FindRunTest() {
    ::setenv("XDG_RUNTIME_DIR", folder_.path().c_str(), 1);  // for the registry of runs
    ::setenv("XDG_STATE_HOME", (root() / "state").c_str(), 1);
    job_.job = "job";
    job_.run_dir = root() / "here";
    options_.cluster_file = folder_.write("job.yaml", "");
  }
  ~FindRunTest() override {
    ::unsetenv("XDG_RUNTIME_DIR");
    ::unsetenv("XDG_STATE_HOME");
  }

  fs::path root() const { return folder_.path(); }
  // Registers a launch of the file from elsewhere.
  fs::path remembered(const std::string& name) const {
    cluster::JobSpec there = job_;
    there.run_dir = root() / name;
    fs::create_directories(there.run_dir);
    EXPECT_EQ(rememberRun(there, options_.cluster_file), "");
    return there.run_dir;
  }
  static RunLock running(const fs::path& folder) {
    return RunLock(folder, {.job = "job", .launcher = ::getpid()});
  }
  // The registry tells by the time which entry is the last one.
  void makeEntriesOlder() const {
    const auto past = fs::file_time_type::clock::now() - std::chrono::hours(1);
    for (const auto& entry : fs::directory_iterator(root() / "dtf"))
      fs::last_write_time(entry.path(), past);
  }
  FoundRun find() const { return findRun(job_, options_); }

  testing::TemporaryFolder folder_;
  cluster::JobSpec job_;
  Options options_;
};

}  // namespace

TEST_F(FindRunTest, AFileThatNeverRanHasItsOwnFolder) {
  EXPECT_EQ(find().folder, root() / "here");
  EXPECT_FALSE(find().running.has_value());
}

TEST_F(FindRunTest, TheOneThatRunsHereComesFirst) {
  const RunLock elsewhere = running(remembered("there"));
  const RunLock here = running(root() / "here");
  EXPECT_EQ(find().folder, root() / "here");
  ASSERT_TRUE(find().running.has_value());
  EXPECT_EQ(find().running->launcher, ::getpid());
}

TEST_F(FindRunTest, OneThatRunsElsewhereIsFoundFromHere) {
  fs::create_directories(root() / "here/logs");  // of a run that has ended
  const RunLock elsewhere = running(remembered("there"));
  EXPECT_EQ(find().folder, root() / "there");
  EXPECT_TRUE(find().running.has_value());
}

TEST_F(FindRunTest, WhenNothingRunsItIsTheLastRun) {
  remembered("there");
  EXPECT_EQ(find().folder, root() / "there");
  EXPECT_FALSE(find().running.has_value());
  fs::create_directories(root() / "here/logs");
  EXPECT_EQ(find().folder, root() / "here") << "it ran from here, too";
}

// A copy of the file has the same `job`, and so the same folder.
TEST_F(FindRunTest, ARunWhoseFolderAnotherFileHasTakenOverIsFoundAndThatFileNamed) {
  const fs::path there = remembered("there");
  makeEntriesOlder();
  const std::string copy = folder_.write("copy.yaml", "");
  job_.run_dir = there;
  ASSERT_EQ(rememberRun(job_, copy), "");
  job_.run_dir = root() / "here";
  const RunLock of_the_copy = running(there);
  EXPECT_EQ(find().folder, there);
  EXPECT_EQ(find().other_file, copy);
  EXPECT_FALSE(find().running.has_value()) << "stop would end it";
  EXPECT_EQ(otherFileText(find()),
            "the last run in " + there.string() + " is of " + copy + ", not of this file");
  const fs::path own = remembered("own");
  EXPECT_EQ(find().folder, own) << "its own one comes first";
  EXPECT_EQ(otherFileText(find()), "");
  options_.cluster_file = copy;
  EXPECT_EQ(find().folder, there);
  EXPECT_TRUE(find().running.has_value());
  EXPECT_TRUE(find().other_file.empty());
}

TEST_F(FindRunTest, ARunOfAnotherFileHereIsNamedAndAnOwnOneElsewhereComesFirst) {
  const std::string copy = folder_.write("copy.yaml", "");
  fs::create_directories(job_.run_dir / "logs");
  ASSERT_EQ(rememberRun(job_, copy), "");
  EXPECT_EQ(find().folder, job_.run_dir);
  EXPECT_EQ(find().other_file, copy);
  const fs::path there = remembered("there");
  EXPECT_EQ(find().folder, there);
  EXPECT_TRUE(find().other_file.empty());
}

TEST_F(FindRunTest, SeveralThatRunElsewhereAreNamed) {
  const RunLock one = running(remembered("one"));
  const RunLock two = running(remembered("two"));
  try {
    find();
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUsage);
    for (const char* name : {"one", "two"})
      EXPECT_NE(error.message().find("--run-dir " + (root() / name).string()), std::string::npos)
          << error.message();
  }
  job_.run_dir = root() / "two";  // as --run-dir sets it
  options_.run_dir = job_.run_dir;
  EXPECT_EQ(find().folder, root() / "two");
}

TEST_F(FindRunTest, RunsOfTheSameNameInOtherFoldersAreNamedWhileTheyRun) {
  const RunLock here = running(remembered("here"));
  remembered("ended");
  EXPECT_EQ(runningElsewhereText(job_), "");
  const RunLock there = running(remembered("there"));
  EXPECT_EQ(runningElsewhereText(job_),
            "another run of job is running in " + (root() / "there").string() + ", pid " +
                std::to_string(::getpid()) + "; this one is in " + (root() / "here").string());
  const RunLock far = running(remembered("far"));
  EXPECT_NE(runningElsewhereText(job_).find(", and 1 more; "), std::string::npos);
  job_.job = "other";
  EXPECT_EQ(runningElsewhereText(job_), "");
}

TEST_F(FindRunTest, AnotherPathToTheSameFileIsTheSameFile) {
  const RunLock elsewhere = running(remembered("there"));
  fs::create_symlink(options_.cluster_file, root() / "link.yaml");
  options_.cluster_file = root() / "x" / ".." / "link.yaml";
  EXPECT_EQ(find().folder, root() / "there");
  job_.job = "another";
  EXPECT_EQ(find().folder, root() / "here") << "but not of another job in it";
}

TEST_F(FindRunTest, ARegistryThatCannotBeWrittenIsAWarning) {
  folder_.write("dtf", "no folder");  // in the registry's place
  fs::create_directories(job_.run_dir);
  EXPECT_NE(rememberRun(job_, options_.cluster_file).find("only from this folder"),
            std::string::npos);
}

TEST_F(FindRunTest, TheLogsOfALaunchBeginWithItsOwnNumberWhateverWasStartedAgainSince) {
  const fs::path here = root() / "here";
  fs::create_directories(here / "logs");
  EXPECT_EQ(launchAttempt(here), 0);
  for (const char* name : {"here/logs/worker-0.3.log", "here/logs/worker-0.4.log"})
    folder_.write(name, "");
  EXPECT_EQ(launchAttempt(here), 4) << "nobody has recorded it";
  RunLock lock = running(here);
  lock.record({.job = "job", .launcher = ::getpid(), .attempt = 3});
  EXPECT_EQ(launchAttempt(here), 3);
}

}  // namespace dtf::launcher
