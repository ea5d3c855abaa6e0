#include "common/cluster/file_pattern.h"

#include <gtest/gtest.h>

#include "tests/support/temporary_files.h"
#include "tests/unit/yaml/scoped_env.h"

namespace dtf::cluster {
namespace {

using Paths = std::vector<std::filesystem::path>;

Paths filesOf(const std::filesystem::path& path) {
  std::string wrong;
  Paths files = cluster::filesOf(path, wrong);
  EXPECT_EQ(wrong, "");
  return files;
}

TEST(FilePattern, StandsForFilesInOrderOfName) {
  const testing::TemporaryFiles files;
  std::filesystem::create_directories("d/below");
  for (const char* name :
       {"d/b.csv", "d/a.csv", "d/c.txt", "d/.hidden.csv", "d/_SUCCESS", "d/x[1]"})
    files.write(name, "1\n");
  EXPECT_EQ(filesOf("d/*.csv"), (Paths{"d/a.csv", "d/b.csv"}));
  files.write("here.csv", "1\n");
  EXPECT_EQ(filesOf("h*.csv"), Paths{"here.csv"}) << "in the working directory";
  EXPECT_EQ(filesOf("d/[bc].*"), (Paths{"d/b.csv", "d/c.txt"}));
  EXPECT_EQ(filesOf("d"), (Paths{"d/a.csv", "d/b.csv", "d/c.txt", "d/x[1]"}));
  EXPECT_EQ(filesOf("d/a.csv"), Paths{"d/a.csv"});
  EXPECT_EQ(filesOf("d/x[1]"), Paths{"d/x[1]"}) << "a file of that name is itself";
}

TEST(FilePattern, WithoutAFileItIsItselfForItsReaderToReport) {
  const testing::TemporaryFiles files;
  std::filesystem::create_directories("empty");
  for (const char* path : {"none.csv", "*.csv", "empty", "missing/*.csv"})
    EXPECT_EQ(filesOf(path), Paths{path}) << path;
}

TEST(FilePattern, OfACopyHasTheNamesOfTheOriginals) {
  const testing::TemporaryFiles files;
  const std::filesystem::path here = std::filesystem::current_path();
  const std::filesystem::path copy = here / "copy" / (here / "d").relative_path();
  std::filesystem::create_directories(copy);
  std::filesystem::create_directories("d");
  files.write("d/stale.csv", "1\n");
  files.write((copy / "a.csv").string(), "1\n");
  const yaml::ScopedEnv sent("DTF_SENT_DATA", (here / "copy").c_str());
  EXPECT_EQ(filesOf(here / "d"), Paths{here / "d/a.csv"});
  EXPECT_EQ(filesOf(here / "d/*.csv"), Paths{here / "d/a.csv"});
}

}  // namespace
}  // namespace dtf::cluster
