#include "common/yaml/sent_files.h"

#include <gtest/gtest.h>

#include "tests/unit/yaml/scoped_env.h"

namespace dtf::yaml {
namespace {

TEST(SentFiles, AProcessThatNothingWasSentToReadsTheFileItself) {
  const ScopedEnv files("DTF_SENT_FILES", nullptr), data("DTF_SENT_DATA", nullptr);
  for (const char* const path : {"c.yaml", "/home/me/c.yaml", "../c.yaml"}) {
    EXPECT_EQ(placeOfFile(path), path);
    EXPECT_EQ(placeOfData(path), path);
  }
}

TEST(SentFiles, AFileLiesAtItsAbsolutePathInTheFolder) {
  const ScopedEnv files("DTF_SENT_FILES", "/run/sent");
  EXPECT_EQ(placeOfFile("/home/me/c.yaml"), "/run/sent/home/me/c.yaml");
  EXPECT_EQ(placeOfFile("/home/me/x/../jobs/./t.yaml"), "/run/sent/home/me/jobs/t.yaml");
  EXPECT_EQ(placeOfFile("t.yaml"),
            "/run/sent" / (std::filesystem::current_path() / "t.yaml").relative_path());
}

TEST(SentFiles, RelativeDataGoOnFromWhereTheJobWasStarted) {
  const ScopedEnv data("DTF_SENT_DATA", "/copies/data"), start("DTF_STARTED_IN", "/home/me");
  EXPECT_EQ(placeOfData("d/t.csv"), "/copies/data/home/me/d/t.csv");
  EXPECT_EQ(placeOfData("../t.csv"), "/copies/data/home/t.csv");
  EXPECT_EQ(placeOfData("/d/../t.csv"), "/copies/data/t.csv") << "an absolute path stays its own";
}

// No number of '..' leads out of the folder.
TEST(SentFiles, APathStaysInTheFolder) {
  const ScopedEnv data("DTF_SENT_DATA", "/copies/data"), start("DTF_STARTED_IN", "/home/me");
  EXPECT_EQ(placeOfData("../../../../etc/passwd"), "/copies/data/etc/passwd");
}

}  // namespace
}  // namespace dtf::yaml
