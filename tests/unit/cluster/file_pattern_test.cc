#include "common/cluster/file_pattern.h"

#include <gtest/gtest.h>

#include "tests/support/temporary_files.h"

namespace dtf::cluster {
namespace {

using Paths = std::vector<std::filesystem::path>;

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

}  // namespace
}  // namespace dtf::cluster
