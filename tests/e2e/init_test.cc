// dtf-launch init: from data to a job's file, a trained model and its predictions; and the jobs of
// configs/jobs/small, which it wrote.

#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "common/base/json.h"
#include "tests/e2e/cluster_fixture.h"
#include "tests/e2e/limited_run.h"

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
  EXPECT_EQ(unread, 0u) << "the table lacks some weights, which are filled";
  EXPECT_GT(right, 9 * (lines.size() - unread) / 10);
}

TEST_F(InitTest, AClassNamedNoneIsLearnt) {
  std::string table = "size,weight,damage\n";
  for (int i = 0; i < 120; ++i)
    table += std::to_string(i % 17) + "," + std::to_string(100 * (i % 3) + i % 11) +
             (i % 3 == 0   ? ",none\n"
              : i % 3 == 1 ? ",minor\n"
                           : ",major\n");
  folder_.write("hail.csv", table + "4,5,\n");
  done({"init", "--data", "hail.csv"});
  const Json summary = lastLine(done({"up", "hail.yaml", "--json"}));
  EXPECT_GT(summary["eval"]["accuracy"].asDouble(), 0.9) << summary.dump();
  EXPECT_EQ(predicted("hail.yaml", "hail.csv")[0]["class_name"], "none");
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

// keep_best with eval_split, at the times of the job that init writes.
TEST_F(InitTest, TheBestEvaluationIsKeptAndUsed) {
  const Json summary = trained("shells.csv", {}, "shells");
  const Json best = summary["best"];
  ASSERT_TRUE(best.isObject()) << summary.dump();
  EXPECT_GE(best["accuracy"].asDouble(), summary["eval"]["accuracy"].asDouble());
  const Json used = lastLine(done({"eval", "shells.yaml", "--best", "--json"}));
  EXPECT_EQ(used["step"], best["checkpoint"]);
  EXPECT_EQ(used["accuracy"], best["accuracy"]);
  done({"predict", "shells.yaml", "--best", "--input", "shells.csv"});
}

TEST_F(InitTest, ALibsvmFileIsTrainedOnAndApplied) {
  std::string lines;
  for (int i = 0; i < 200; ++i)
    lines += (i % 2 == 0 ? "+1 " : "-1 ") + std::to_string(1 + i % 3) + ":" +
             std::to_string(i % 7) + (i % 2 == 0 ? " 4:1\n" : " 6:2.5\n");
  folder_.write("lines.svm", lines);
  done({"init", "--data", "lines.svm"});
  const Json summary = lastLine(done({"up", "lines.yaml", "--json"}));
  EXPECT_GT(summary["eval"]["accuracy"].asDouble(), 0.9) << summary.dump();
  EXPECT_EQ(predicted("lines.yaml", "lines.svm")[0]["class_name"], "1");
}

// The table changes after init: a few records more lack their class, then more than the job's file
// lets be left out.
TEST_F(InitTest, MoreGapsThanInitFoundAreLeftOutUpToALimitThatIsNamed) {
  copyData("shells.csv");
  const auto add = [this](int records) {
    std::ofstream table(folder_.path() + "/shells.csv", std::ios::app);
    for (int i = 0; i < records; ++i) table << 1000 + i << ",north,50,40,12,NA,\n";
  };
  add(9);
  done({"init", "--data", "shells.csv"});
  add(5);
  done({"check", "shells.yaml"});
  add(20);
  const ProcessResult result = run({"check", "shells.yaml"});
  EXPECT_EQ(result.exit_code, 65) << result.err;
  EXPECT_THAT(result.err, HasSubstr("max_bad_records is 19; raise max_bad_records"));
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

// Two million different words, and gaps in all orders.
TEST_F(InitTest, ALargeTableIsLookedAtInAFixedMemory) {
  {
    std::ofstream table(folder_.path() + "/words.csv");
    uint32_t random = 1;
    const auto next = [&random] { return (random = random * 1664525 + 1013904223) >> 16; };
    table << "comment,a,b,c,kind\n";
    for (int row = 0; row < 2'000'000; ++row) {
      table << "word-" << row;
      for (int column = 0; column < 3; ++column)
        table << ',' << (next() % 16 == 0 ? "" : std::to_string(next() % 10));
      table << (next() % 2 == 0 ? ",x\n" : ",y\n");
    }
  }
  const Spent spent =
      runLimited({binary("dtf-launch"), "init", "--data", "words.csv"}, folder_.path());
  EXPECT_EQ(spent.exit_code, 0) << spent.said;
  EXPECT_THAT(spent.said, HasSubstr("left out: nearly every record has a text of its own"));
  EXPECT_LT(spent.memory_kib, kMemoryMaxKib);
  EXPECT_LT(spent.seconds, kSecondsMax);
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

// The jobs in configs/jobs/small reach the accuracy that their data allow.
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
