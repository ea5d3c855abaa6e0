#include <gmock/gmock.h>

#include <filesystem>

#include "common/base/json.h"
#include "launcher/commands.h"
#include "tests/unit/launcher/init/init_fixture.h"

namespace dtf::launcher {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class InitCommand : public InitTest {
 protected:
  InitCommand() : before_(std::filesystem::current_path()) {
    std::filesystem::current_path(folder_.path());
    folder_.write("shells.v1.csv", "size,kind\n1,x\n2,y\n1,x\n2,y\n");
    options_.data = "shells.v1.csv";
  }
  ~InitCommand() override { std::filesystem::current_path(before_); }

  std::string printed() {
    ::testing::internal::CaptureStdout();
    try {
      EXPECT_EQ(initJob(options_), 0);
    } catch (...) {
      ::testing::internal::GetCapturedStdout();
      throw;
    }
    return ::testing::internal::GetCapturedStdout();
  }

  const std::filesystem::path before_;
  Options options_;
};

TEST_F(InitCommand, WritesTheFileOfTheDatasName) {
  EXPECT_THAT(printed(), AllOf(HasSubstr("shells.v1.csv: 4 records of 2 columns"),
                               HasSubstr("shells.yaml: written. Next:\n  dtf-launch shells.yaml\n"),
                               HasSubstr("predict shells.yaml --input shells.v1.csv")));
  EXPECT_EQ(cluster::loadCluster("shells.yaml", {}).job, "shells");
  const std::string text = folder_.read("shells.yaml");
  EXPECT_THAT(mistakeOf(ErrorCode::kCannotWrite, [this] { printed(); }),
              HasSubstr("shells.yaml is there already: --force replaces it"));
  options_.target = "size";
  options_.force = true;
  printed();
  EXPECT_NE(folder_.read("shells.yaml"), text);
}

TEST_F(InitCommand, WritesAnotherFileOrStdout) {
  std::filesystem::create_directory("jobs");
  options_.output = "jobs/a.yaml";
  printed();
  EXPECT_THAT(folder_.read("jobs/a.yaml"), HasSubstr("files: [\"../shells.v1.csv\"]"));
  options_.output = "-";
  EXPECT_THAT(printed(), StartsWith("# dtf-launch init wrote this file"));
  EXPECT_FALSE(std::filesystem::exists("-"));
}

TEST_F(InitCommand, AFileThatCannotBeIsNotWrittenAndLeavesTheOneThatIsThere) {
  std::string names, records;
  for (int i = 0; i < 3000; ++i) names += std::string(500, 'x') + std::to_string(i) + ",";
  for (int row = 0; row < 4; ++row) {
    for (int i = 0; i < 3000; ++i) records += std::to_string((i + 3 * row) % 7) + ",";
    records += row % 2 == 0 ? ",x\n" : ",y\n";
  }
  folder_.write("wide.csv", names + "gap,kind\n" + records);
  options_.data = "wide.csv";
  mistakeOf(ErrorCode::kBadData, [this] { printed(); });
  EXPECT_FALSE(std::filesystem::exists("wide.yaml"));
  folder_.write("wide.yaml", "mine");
  options_.force = true;
  mistakeOf(ErrorCode::kBadData, [this] { printed(); });
  EXPECT_EQ(folder_.read("wide.yaml"), "mine");
}

TEST_F(InitCommand, AnswersInJson) {
  options_.json = true;
  const Json event = Json::parse(printed());
  EXPECT_EQ(event["event"], "init");
  EXPECT_EQ(event["file"], "shells.yaml");
  EXPECT_EQ(event["next"].size(), 3u);
}

TEST_F(InitCommand, NothingIsWrittenOfDataThatCannotBeRead) {
  options_.data = "none.csv";
  mistakeOf(ErrorCode::kBadData, [this] { printed(); });
  EXPECT_FALSE(std::filesystem::exists("none.yaml"));
  options_.data.reset();
  EXPECT_THAT(mistakeOf(ErrorCode::kUsage, [this] { printed(); }),
              HasSubstr("the data are missing"));
}

}  // namespace
}  // namespace dtf::launcher
