#include "daemons/restart_note.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "common/base/file.h"
#include "tests/support/process.h"

namespace dtf::daemons {
namespace {

class RestartNoteTest : public ::testing::Test {
 protected:
  RestartNoteTest() {
    job_.job = "digits";
    job_.run_dir = "/var/lib/dtf/runs/digits";
  }
  RestartNote note() const { return {folder_.path(), job_}; }
  std::filesystem::path file() const {
    return std::filesystem::path(folder_.path()) / "chief.note";
  }

  testing::TemporaryFolder folder_;
  cluster::JobSpec job_;
};

TEST_F(RestartNoteTest, TheNextProcessReadsWhatTheLastOneLeft) {
  EXPECT_FALSE(note().reached());
  EXPECT_TRUE(note().result().isNull());
  note().reach(120);
  EXPECT_EQ(note().reached(), 120u);
  EXPECT_TRUE(note().result().isNull());
  note().end(200, {{"outcome", "done"}, {"final_loss", 0.1}});
  EXPECT_EQ(note().reached(), 200u);
  EXPECT_EQ(note().result().stringAt("outcome"), "done");
  note().reach(201);
  EXPECT_TRUE(note().result().isNull()) << "the job has gone on";
  note().forget();
  EXPECT_FALSE(note().reached());
}

TEST_F(RestartNoteTest, OfAnotherJobOrRunFolderItIsNone) {
  note().reach(120);
  job_.job = "letters";
  EXPECT_FALSE(note().reached());
  job_.job = "digits";
  job_.run_dir = "/var/lib/dtf/runs/other";
  EXPECT_FALSE(note().reached());
}

TEST_F(RestartNoteTest, OneThatIsDamagedIsNone) {
  note().end(200, {{"outcome", "done"}});
  const std::string whole = readFile(file(), 1 << 20);
  for (size_t at = 0; at < whole.size(); ++at) {
    std::string turned = whole;
    turned[at] = static_cast<char>(turned[at] ^ 1);
    atomicReplace(file(), turned);
    EXPECT_FALSE(note().reached()) << "byte " << at;
    atomicReplace(file(), whole.substr(0, at));
    EXPECT_FALSE(note().reached()) << "cut off behind " << at;
  }
}

TEST_F(RestartNoteTest, WithoutSystemdsFolderThereIsNone) {
  ::unsetenv("RUNTIME_DIRECTORY");
  EXPECT_FALSE(RestartNote::ofEnvironment(job_).has_value());
  ::setenv("RUNTIME_DIRECTORY", (folder_.path() + ":/run/other").c_str(), 1);
  auto made = RestartNote::ofEnvironment(job_);
  ::unsetenv("RUNTIME_DIRECTORY");
  ASSERT_TRUE(made.has_value());
  made->reach(7);
  EXPECT_EQ(note().reached(), 7u);
}

TEST_F(RestartNoteTest, AFolderThatCannotBeWrittenCostsTheJobNothing) {
  RestartNote lost(std::filesystem::path(folder_.path()) / "none", job_);
  lost.reach(1);
  lost.end(2, {{"outcome", "done"}});
  EXPECT_FALSE(lost.reached());
}

}  // namespace
}  // namespace dtf::daemons
