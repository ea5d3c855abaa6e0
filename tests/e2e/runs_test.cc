// dtf-launch runs, compare and eval --report, on small jobs.

#include <chrono>
#include <csignal>
#include <filesystem>
#include <map>
#include <sstream>
#include <vector>

#include "common/base/json.h"
#include "tests/e2e/cluster_fixture.h"

namespace dtf::testing {

using std::chrono::seconds;

namespace {

std::vector<Json> jsonLines(const std::string& text) {
  std::vector<Json> lines;
  std::istringstream read(text);
  for (std::string line; std::getline(read, line);) lines.push_back(Json::parse(line));
  return lines;
}

}  // namespace

class RunsTest : public ClusterTest {
 protected:
  // dtf-launch, from a folder that has nothing to do with the job.
  static ProcessResult verb(std::vector<std::string> words) {
    words.insert(words.begin(), binary("dtf-launch"));
    return runProcess(std::move(words), seconds(60), {}, "/");
  }
  static ClusterOptions options(int steps) {
    ClusterOptions options;
    options.mode = "sync";
    options.steps = steps;
    options.train_more = "  checkpoint: {every_steps: 20}\n";
    return options;
  }
  // Writes a job of a table and returns its path. 611 rows are no multiple of a batch, and three
  // more can't be read.
  std::string writeKinds(const std::vector<std::string>& kinds) const {
    std::string table = "bill,flipper,kind\n";
    for (int i = 0; i < 611; ++i) {
      if (i % 250 == 100) table += "wide," + std::to_string(i) + ",gentoo\n";
      const int kind = i % 7 % 3;
      table += std::to_string(38 + 3 * kind + i % 5) + "," +
               std::to_string(185 + 9 * (kind == 2) + i % 11) + "," +
               kinds[static_cast<size_t>(kind)] + "\n";
    }
    folder_.write("t.csv", table);
    const std::string data =
        "{format: csv, files: [t.csv], label_column: kind, class_names: [adelie, chinstrap, "
        "gentoo], "
        "max_bad_records: 5}";
    return folder_.write(
        "kinds.yaml",
        "job: kinds\nrun_dir: " + folder_.path() +
            "/runs/kinds\ntrain:\n"
            "  model: {input: {shape: [2]}, layers: [normalization: {mean: [42, 190], "
            "variance: [10, 30]}, "
            "dense: {units: 3}], loss: sparse_categorical_crossentropy}\n"
            "  data: {batch_size: 20, train: " +
            data + ", eval: " + data +
            "}\n  steps: 60\n  optimizer: {adam: {learning_rate: 0.05}}\n");
  }
};

// The ports of the tasks differ in each launch, and are no difference.
TEST_F(RunsTest, AreListedAndComparedFromAnyFolder) {
  ASSERT_EQ(launch(writeCluster(options(40), "short")).exit_code, 0);
  const std::string long_file = writeCluster(options(60), "long");
  ASSERT_EQ(launch(long_file).exit_code, 0);
  const ProcessResult listed = verb({"runs", "--json"});
  ASSERT_EQ(listed.exit_code, 0) << listed.err;
  const std::vector<Json> runs = jsonLines(listed.out);
  ASSERT_EQ(runs.size(), 2u) << listed.out;
  EXPECT_EQ(runs[0]["job"], "long") << "the newest first";
  EXPECT_EQ(runs[0]["state"], "done");
  EXPECT_EQ(runs[0]["run_dir"], folder_.path() + "/runs/long");
  EXPECT_EQ(runs[0]["cluster_file"], long_file);
  EXPECT_EQ(runs[0]["global_step"], 60);
  EXPECT_EQ(runs[0]["checkpoint_step"], 60);
  EXPECT_EQ(runs[0]["final_loss"], summary("long")["final_loss"]);
  EXPECT_EQ(runs[0]["eval"]["accuracy"], summary("long")["eval"]["accuracy"]);
  EXPECT_NEAR(runs[0]["wall_seconds"].asDouble(), summary("long")["wall_seconds"].asDouble(), 1e-6);
  const ProcessResult text = verb({"runs", folder_.path()});
  EXPECT_TRUE(text.out.starts_with("ID        JOB    STATE  STARTED")) << text.out;

  const ProcessResult compared = verb({"compare", "short", runs[0]["id"].asString(), "--json"});
  ASSERT_EQ(compared.exit_code, 0) << compared.err;
  const Json said = Json::parse(compared.out);
  ASSERT_EQ(said["settings"].size(), 1u) << said;
  EXPECT_EQ(said["settings"][0].dump(), R"({"key":"train.steps","values":["40","60"]})");
  EXPECT_EQ(said["runs"][0]["parameters_digest"], summary("short")["parameters_digest"]);
  EXPECT_EQ(said["runs"][1]["parameters_digest"], summary("long")["parameters_digest"]);
  const ProcessResult beside = verb({"compare", "short", "long"});
  EXPECT_NE(beside.out.find("\n  train.steps  40"), std::string::npos) << beside.out;
  EXPECT_NE(beside.out.find("\n  parameters "), std::string::npos) << beside.out;

  const ProcessResult unknown = verb({"compare", "short", "lon9"});
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_NE(unknown.err.find("did you mean 'long'?"), std::string::npos) << unknown.err;
  std::filesystem::remove_all(folder_.path() + "/runs/short");
  EXPECT_EQ(jsonLines(verb({"runs", "--json"}).out).size(), 1u) << "its folder is gone";
}

TEST_F(RunsTest, ALiveRunIsListedAndAnotherOneOfItsNameNamesIt) {
  const std::string file = writeCluster(options(kEndless));
  Process launcher(launchCommand(file), {}, folder_.path());
  ASSERT_TRUE(launcher.waitForOutput("| loss ", seconds(30))) << launcher.err();
  // The launcher writes its first progress soon after it has shown it.
  const auto until = std::chrono::steady_clock::now() + kPatience;
  std::vector<Json> runs;
  do {
    runs = jsonLines(verb({"runs", "--json"}).out);
    ASSERT_EQ(runs.size(), 1u);
  } while (runs[0]["steps"].isNull() && std::chrono::steady_clock::now() < until);
  EXPECT_EQ(runs[0]["state"], "running");
  EXPECT_EQ(runs[0]["steps"], kEndless);
  EXPECT_FALSE(runs[0]["started"].isNull());
  const std::string other = folder_.path() + "/elsewhere";
  const ProcessResult second = verb({"up", file, "--run-dir", other, "--set", "train.steps=20"});
  EXPECT_EQ(second.exit_code, 0) << second.err;
  EXPECT_NE(
      second.err.find("another run of job is running in " + folder_.path() + "/runs/job, pid "),
      std::string::npos)
      << second.err;
  launcher.signal(SIGTERM);
  EXPECT_EQ(launcher.wait(seconds(30)).exit_code, 0) << launcher.err();
  const ProcessResult quiet = verb({"up", file, "--run-dir", other, "--set", "train.steps=40"});
  EXPECT_EQ(quiet.err.find("another run of"), std::string::npos) << quiet.err;
}

// The figures are worked out from the class and the truth of each line of `predict`.
TEST_F(RunsTest, TheReportByClassIsOfTheRowsThatCanBeRead) {
  const std::vector<std::string> kinds = {"adelie", "chinstrap", "gentoo"};
  const std::string file = writeKinds(kinds);
  const ProcessResult trained = verb({"up", file, "-q"});
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  const ProcessResult predicted = verb({"predict", file, "--json"});
  ASSERT_EQ(predicted.exit_code, 0) << predicted.err;
  EXPECT_NE(predicted.err.find("dtf-launch: using checkpoint " + folder_.path() +
                               "/runs/kinds/checkpoints/step-60\n"),
            std::string::npos)
      << predicted.err;
  std::map<std::pair<std::string, std::string>, int> counts;
  int right = 0, unread = 0;
  for (const Json& line : jsonLines(predicted.out)) {
    if (line.contains("error")) {
      ++unread;
      continue;
    }
    const std::string truth = line["truth"].asString(), given = line["class_name"].asString();
    ++counts[{truth, given}];
    right += truth == given ? 1 : 0;
  }
  ASSERT_EQ(unread, 3);
  ASSERT_LT(right, 611) << "the test needs some mistakes";

  const ProcessResult evaluated = verb({"eval", file, "--report", "--json"});
  ASSERT_EQ(evaluated.exit_code, 0) << evaluated.err;
  const Json said = Json::parse(evaluated.out);
  EXPECT_EQ(said["left_out"], 3);
  const Json& report = said["report"];
  EXPECT_EQ(report["examples"], 611);
  EXPECT_DOUBLE_EQ(report["accuracy"].asDouble(), right / 611.0);
  double macro = 0;
  for (size_t i = 0; i < 3; ++i) {
    int has = 0, given = 0;
    for (size_t j = 0; j < 3; ++j) {
      has += counts[{kinds[i], kinds[j]}];
      given += counts[{kinds[j], kinds[i]}];
      EXPECT_EQ(report["confusion"]["matrix"][i][j].asDouble(), (counts[{kinds[i], kinds[j]}]));
    }
    const int hits = counts[{kinds[i], kinds[i]}];
    const Json& row = report["classes"][i];
    EXPECT_EQ(row["name"], kinds[i]);
    EXPECT_EQ(row["support"], has);
    EXPECT_DOUBLE_EQ(row["precision"].asDouble(), given == 0 ? 0 : 1.0 * hits / given);
    EXPECT_DOUBLE_EQ(row["recall"].asDouble(), 1.0 * hits / has);
    EXPECT_DOUBLE_EQ(row["f1"].asDouble(), 2.0 * hits / (given + has));
    macro += 2.0 * hits / (given + has) / 3;
  }
  EXPECT_NEAR(report["macro"]["f1"].asDouble(), macro, 1e-12);
  const ProcessResult text = verb({"eval", file, "--report"});
  EXPECT_NE(text.out.find("\n  chinstrap "), std::string::npos) << text.out;
  EXPECT_NE(text.out.find("\n  weighted average "), std::string::npos) << text.out;
}

// A table of numbers to learn has no classes.
TEST_F(RunsTest, AModelOfNumbersHasNoReportByClass) {
  folder_.write("t.csv", "a,b\n1,2\n3,4\n5,6\n7,8\n");
  const std::string data = "{format: csv, files: [t.csv], target_columns: [b]}";
  const std::string file = folder_.write(
      "line.yaml", "job: line\nrun_dir: " + folder_.path() +
                       "/runs/line\ntrain:\n  model: {input: {shape: [1]}, layers: [dense: {units: "
                       "1}], loss: mean_squared_error}\n  data: {batch_size: 2, train: " +
                       data + ", eval: " + data + "}\n  steps: 4\n");
  ASSERT_EQ(verb({"up", file, "-q"}).exit_code, 0);
  const ProcessResult refused = verb({"eval", file, "--report"});
  EXPECT_EQ(refused.exit_code, 78);
  EXPECT_TRUE(refused.err.starts_with(file + ":4:")) << refused.err;
  EXPECT_NE(refused.err.find("--report counts classes, and this model learns numbers"),
            std::string::npos)
      << refused.err;
}

}  // namespace dtf::testing
