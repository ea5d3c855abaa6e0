// dtf-launch init: from data to a job's file, a trained model and its predictions; and the jobs of
// configs/jobs/small, which it wrote.

#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "common/base/json.h"
#include "tests/e2e/cluster_fixture.h"

namespace dtf::testing {
namespace {

using ::testing::HasSubstr;

class InitTest : public ClusterTest {
 protected:
  static std::filesystem::path smallJobs() {
    return std::filesystem::path(std::getenv("DTF_SOURCE_ROOT")) / "configs/jobs/small";
  }
  void copyData(const std::string& name) const {
    std::filesystem::copy(smallJobs() / name, std::filesystem::path(folder_.path()) / name,
                          std::filesystem::copy_options::recursive);
  }

  // dtf-launch with these words, in the folder of the test.
  ProcessResult run(std::vector<std::string> words) const {
    words.insert(words.begin(), binary("dtf-launch"));
    return runProcess(std::move(words), kPatience, {}, folder_.path());
  }
  std::string done(const std::vector<std::string>& words) const {
    const ProcessResult result = run(words);
    EXPECT_EQ(result.exit_code, 0) << words[0] << "\n" << result.out << result.err;
    return result.out;
  }
  Json lastLine(const std::string& text) const {
    std::istringstream lines(text);
    std::string last;
    for (std::string line; std::getline(lines, line);)
      if (!line.empty()) last = line;
    return last.empty() ? Json() : Json::parse(last);
  }

  // The job of init for copied data, trained: its summary.
  Json trained(const std::string& data, const std::vector<std::string>& options,
               const std::string& name) {
    copyData(data);
    std::vector<std::string> words = {"init", "--data", data};
    words.insert(words.end(), options.begin(), options.end());
    EXPECT_THAT(done(words), HasSubstr(name + ".yaml: written"));
    return lastLine(done({"up", name + ".yaml", "--json"}));
  }
  // The predictions of the trained job for a file.
  std::vector<Json> predicted(const std::string& job, const std::string& input) {
    std::vector<Json> lines;
    std::istringstream text(done({"predict", job, "--input", input, "--json"}));
    for (std::string line; std::getline(text, line);) lines.push_back(Json::parse(line));
    return lines;
  }
};

TEST_F(InitTest, ATableIsTrainedOnAndApplied) {
  const Json summary = trained("shells.csv", {"--target", "species"}, "shells");
  EXPECT_GT(summary["eval"]["accuracy"].asDouble(), 0.9) << summary.dump();
  const std::vector<Json> lines = predicted("shells.yaml", "shells.csv");
  ASSERT_EQ(lines.size(), 240u);
  size_t right = 0, unread = 0;
  for (const Json& line : lines) {
    if (!line.contains("class_name"))
      ++unread;
    else
      right += line["class_name"] == line["truth"];
  }
  EXPECT_GT(unread, 0u) << "the table lacks some weights";
  EXPECT_GT(right, 9 * (lines.size() - unread) / 10);
}

TEST_F(InitTest, AnArchiveIsTrainedOnAndApplied) {
  const Json summary = trained("signals.npz", {}, "signals");
  EXPECT_GT(summary["eval"]["accuracy"].asDouble(), 0.8) << summary.dump();
  EXPECT_EQ(predicted("signals.yaml", "signals.npz").size(), 320u);
}

TEST_F(InitTest, AFolderOfImagesIsTrainedOnAndApplied) {
  const Json summary = trained("shapes", {}, "shapes");
  EXPECT_GT(summary["eval"]["accuracy"].asDouble(), 0.9) << summary.dump();
  const std::vector<Json> lines = predicted("shapes.yaml", "shapes");
  ASSERT_EQ(lines.size(), 90u);
  EXPECT_EQ(lines[0]["class_name"], "circle");
}

// Each side of the split by its own verb: they are the same examples.
TEST_F(InitTest, WhatTheJobEvaluatesTheVerbEvaluates) {
  const Json summary = trained("signals.npz", {}, "signals");
  const Json eval = lastLine(done({"eval", "signals.yaml", "--json"}));
  EXPECT_EQ(eval["loss"], summary["eval"]["loss"]);
  std::istringstream lines(done({"predict", "signals.yaml", "--json"}));
  int64_t count = 0;
  for (std::string line; std::getline(lines, line);) ++count;
  EXPECT_EQ(eval["examples"], count);
  EXPECT_GT(count, 30);
  EXPECT_LT(count, 110);
}

// A worker with other examples would be refused.
TEST_F(InitTest, AllWorkersDivideTheDataAlike) {
  copyData("shells.csv");
  done({"init", "--data", "shells.csv"});
  const std::string cluster =
      "cluster={ps: [\"localhost:auto\"], worker: [\"localhost:auto\", \"localhost:auto\"]}";
  const Json summary = lastLine(done({"up", "shells.yaml", "--json", "--set", cluster}));
  EXPECT_GT(summary["eval"]["accuracy"].asDouble(), 0.9) << summary.dump();
  const ProcessResult other = run({"up", "shells.yaml", "--set", "train.data.eval_split=0.4"});
  EXPECT_THAT(other.err, HasSubstr("changed since then: data.eval_split 0.2 -> 0.4"));
}

TEST_F(InitTest, MistakesHaveTheirExitCodes) {
  copyData("shells.csv");
  folder_.write("empty.csv", "");
  folder_.write("one.csv", "a,b\n1,x\n2,x\n");
  folder_.write("bytes", std::string("\0\1\2\3", 4));
  const std::pair<std::vector<std::string>, int> mistakes[] = {
      {{"--data", "none.csv"}, 65},
      {{"--data", "empty.csv"}, 65},
      {{"--data", "one.csv"}, 65},
      {{"--data", "bytes"}, 65},
      {{"--data", "shells.csv", "--target", "spezies"}, 2},
      {{"--data", "shells.csv", "-o", "empty.csv"}, 73},
      {{}, 2}};
  for (const auto& [options, code] : mistakes) {
    std::vector<std::string> words = {"init"};
    words.insert(words.end(), options.begin(), options.end());
    const ProcessResult result = run(words);
    EXPECT_EQ(result.exit_code, code) << result.err;
    EXPECT_THAT(result.err, HasSubstr("error: "));
  }
  EXPECT_THAT(run({"init", "--data", "shells.csv", "--target", "spezies"}).err,
              HasSubstr("shells.csv:1:1: error: --target: there is no column 'spezies' - did you "
                        "mean 'species'?"));
}

// The jobs that are shipped beside their data learn what there is to learn.
TEST_F(InitTest, TheSmallJobsLearn) {
  const struct {
    std::string job, metric;
    double least;
  } jobs[] = {{"shells", "accuracy", 0.9}, {"rents", "r2_score", 0.8},
              {"visits", "auc", 0.75},     {"signals", "accuracy", 0.8},
              {"turns", "accuracy", 0.9},  {"shapes", "accuracy", 0.9}};
  for (const auto& [job, metric, least] : jobs) {
    const std::string file = (smallJobs() / (job + ".yaml")).string();
    const Json summary =
        lastLine(done({"up", file, "--json", "--run-dir", folder_.path() + "/run-" + job}));
    EXPECT_GT(summary["eval"][metric].asDouble(), least) << job << "\n" << summary.dump();
  }
}

}  // namespace
}  // namespace dtf::testing
