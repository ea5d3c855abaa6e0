#include "launcher/run_list.h"

#include <gmock/gmock.h>

#include "common/base/error.h"
#include "tests/unit/launcher/runs_fixture.h"

namespace dtf::launcher {

namespace fs = std::filesystem;

class RunListTest : public RunsTest {
 protected:
  static std::vector<std::string> jobs(const std::vector<fs::path>& folders = {}) {
    std::vector<std::string> names;
    for (const RunFacts& run : listRuns(folders)) names.push_back(run.job);
    return names;
  }
  static std::string refusal(const std::string& name) {
    try {
      runNamed(name);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kUsage);
      return error.message();
    }
    ADD_FAILURE() << "no error";
    return "";
  }
};

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST_F(RunListTest, HasTheRunsOfTheRegistriesAndOfTheCurrentFolderNewestFirst) {
  registered(ended("far/away", "digits", 20), "digits");
  registered(ended("gone", "gone", 25), "gone");
  ended("here/runs/table", "table", 30);
  EXPECT_THAT(jobs(), ElementsAre("gone", "digits"));
  fs::remove_all(root() / "gone");
  fs::current_path(root() / "here");
  EXPECT_THAT(jobs(), ElementsAre("table", "digits"));
  EXPECT_EQ(listRuns({})[1].cluster_file, root() / "far/away/job.yaml");
  EXPECT_TRUE(listRuns({})[0].cluster_file.empty()) << "no launch has registered it";
  fs::current_path(root() / "empty");
}

TEST_F(RunListTest, OutlivesTheLogin) {
  registered(ended("a", "digits", 20), "digits");
  fs::remove_all(root() / "dtf");  // below XDG_RUNTIME_DIR
  EXPECT_THAT(jobs(), ElementsAre("digits"));
}

TEST_F(RunListTest, OfFoldersHasTheirRunsAlone) {
  registered(ended("far/away", "digits", 20), "digits");
  ended("here/runs/table", "table", 30);
  EXPECT_THAT(jobs({root() / "here"}), ElementsAre("table"));
  EXPECT_THAT(jobs({root() / "here/runs"}), ElementsAre("table"));
  EXPECT_THAT(jobs({root() / "here/runs/table"}), ElementsAre("table"));
  EXPECT_THAT(jobs({root() / "far", root() / "here", root() / "far/away"}),
              ElementsAre("table", "digits"));
  EXPECT_EQ(listRuns({root() / "far"})[0].cluster_file, root() / "far/away/job.yaml");
  EXPECT_THAT(jobs({root() / "empty"}), IsEmpty());
  EXPECT_THROW(listRuns({root() / "none"}), Error);
}

TEST_F(RunListTest, AWordNamesARunByFolderJobOrBeginning) {
  const fs::path digits = ended("a", "digits", 20), adam = ended("b", "digits-adam", 30);
  registered(digits, "digits");
  registered(adam, "digits-adam");
  EXPECT_EQ(runNamed(adam.string()).folder, adam);
  EXPECT_EQ(runNamed("digits").folder, digits) << "the whole name";
  EXPECT_EQ(runNamed("digits-").folder, adam);
  EXPECT_EQ(runNamed(runId(digits).substr(0, 7)).folder, digits);
  EXPECT_THAT(refusal("dig"), HasSubstr("'dig' means 2 runs"));
  EXPECT_THAT(refusal("dig"), HasSubstr(runId(adam) + "  digits-adam  " + adam.string()));
  EXPECT_THAT(refusal("digit-adam"), HasSubstr("did you mean 'digits-adam'?"));
  EXPECT_THAT(refusal(""), HasSubstr("'dtf-launch runs' lists the runs"));
}

}  // namespace dtf::launcher
