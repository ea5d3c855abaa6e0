// A table of changes between two runs, and of the verbs that use the model. Each cell is the same
// result or a refusal that names both sides. Another result is the fault: the meaning of each
// number belongs to the model.

#include <filesystem>
#include <functional>
#include <map>
#include <sstream>

#include "tests/e2e/cluster_fixture.h"

namespace dtf::testing {

using std::chrono::seconds;

namespace {

constexpr int kRows = 60;

// Columns by name, of one table.
using Row = std::map<std::string, std::string>;

std::vector<Row> rows() {
  std::vector<Row> all;
  for (int i = 0; i < kRows; ++i) {
    const int a = i * 37 % 11, b = i * 17 % 7;
    all.push_back({{"a", std::to_string(a)},
                   {"b", std::to_string(b)},
                   {"city", i % 3 == 0 ? "rome" : "york"},
                   {"kind", a > b ? "yes" : "no"},
                   {"sort", i % 2 == 0 ? "yes" : "no"},
                   {"id", std::to_string(i)}});
  }
  return all;
}

std::string tableOf(const std::vector<std::string>& columns, bool header = true) {
  std::string text;
  const auto add = [&](const std::function<std::string(const std::string&)>& field) {
    for (size_t i = 0; i < columns.size(); ++i) text += (i == 0 ? "" : ",") + field(columns[i]);
    text += "\n";
  };
  if (header) add([](const std::string& column) { return column; });
  for (const Row& row : rows()) add([&](const std::string& column) { return row.at(column); });
  return text;
}

// The `data` keys of the job file.
struct Said {
  std::string label = "kind";
  std::string features;  // "[a, b]"; empty: all others
  std::string classes = "[no, yes]";
  std::string words = "vocabulary_list: [rome, york]";
  std::string header = "true";
  std::string city = "city";
};

struct Change {
  std::string what;
  std::vector<std::string> columns = {"a", "b", "city", "kind"};
  Said said = {};
  bool has_header = true;
  // The expected result of each verb: "same", or a part of the refusal.
  std::string evaluated = "same";
  std::string predicted = "same";
  std::string resumed = "same";
};

std::vector<Change> changes() {
  return {
      {"nothing"},
      {"the order of the columns",
       {"kind", "city", "b", "a"},
       {},
       true,
       "same",
       "same",
       "trained on the columns a, b, and"},
      {"the order of feature_columns",
       {"a", "b", "city", "kind"},
       {"kind", "[b, a]"},
       true,
       "same",
       "same",
       "has them in the order b, a"},
      {"one more column, and feature_columns",
       {"id", "a", "b", "city", "kind"},
       {"kind", "[a, b]"}},
      {"another target",
       {"a", "b", "city", "sort", "kind"},
       {"sort", "[a, b]"},
       true,
       "trained on the column kind",
       "same",
       "trained on the column kind"},
      {"a column that is another one",
       {"a", "id", "city", "kind"},
       {},
       true,
       "trained on the columns a, b, and",
       "same",
       "trained on the columns a, b, and"},
      {"the order of class_names",
       {"a", "b", "city", "kind"},
       {"kind", "", "[yes, no]"},
       true,
       "class 0 is 'no'",
       "same",
       "class 0 is 'no'"},
      {"the words' order",
       {"a", "b", "city", "kind"},
       {"kind", "", "[no, yes]", "vocabulary_list: [york, rome]"},
       true,
       "place: word 0 is 'rome' of the 2 that the model was trained on, and 'york' of the 2",
       "place: word 0 is 'rome' of the 2 that the model was trained on, and 'york' of the 2",
       "place: word 0 is 'rome' of the 2 that the model was trained on, and 'york' of the 2"},
      {"words that are hashed",
       {"a", "b", "city", "kind"},
       {"kind", "", "[no, yes]", "hash_bucket_size: 2"},
       true,
       "place",
       "place",
       "place"},
      {"no header",
       {"a", "b", "city", "kind"},
       {"4", "", "[no, yes]", "vocabulary_list: [rome, york]", "false", "3"},
       false,
       "have none",
       "header: false",
       "have none"},
  };
}

}  // namespace

class MeaningTest : public ClusterTest {
 protected:
  std::string write(const Said& said, const std::string& run = "job") {
    const std::string table = "{format: csv, files: [t.csv], header: " + said.header +
                              ", label_column: " + said.label + ", class_names: " + said.classes +
                              (said.features.empty() ? "" : ", feature_columns: " + said.features) +
                              ", categorical_columns: {place: {columns: [" + said.city + "], " +
                              said.words + "}}}";
    return folder_.write(
        "job.yaml",
        "job: job\nrun_dir: " + folder_.path() + "/runs/" + run +
            "\ncluster: {ps: [localhost:auto], worker: [localhost:auto]}\ntrain:\n"
            "  model:\n    input: {shape: [2]}\n    layers:\n"
            "      - dense: {units: 4, name: d}\n"
            "      - embedding: {categories: place, input_dim: 2, output_dim: 3, combiner: sum}\n"
            "      - concatenate: {with: [d]}\n"
            "      - dense: {units: 2}\n"
            "    loss: sparse_categorical_crossentropy\n    metrics: [accuracy]\n"
            "  data:\n    train: " +
            table + "\n    eval: " + table + "\n    batch_size: 20\n" +
            "  optimizer: {adam: {learning_rate: 0.05}}\n  replication: {mode: sync}\n"
            "  steps: 30\n  checkpoint: {every_steps: 30}\n");
  }

  ProcessResult verb(std::vector<std::string> argv) {
    argv.insert(argv.begin(), binary("dtf-launch"));
    return runProcess(std::move(argv), seconds(60), {}, folder_.path());
  }

  // The loss that eval --json reports; null: it has failed.
  static Json lossOf(const std::string& line) {
    const Json event = Json::parseOrNull(line);
    return event.contains("loss") ? event["loss"] : Json();
  }

  // Restores the run that each cell begins from.
  void restoreRun() {
    std::filesystem::remove_all(folder_.path() + "/runs/job");
    std::filesystem::copy(folder_.path() + "/kept", folder_.path() + "/runs/job",
                          std::filesystem::copy_options::recursive);
  }

  // Expects the same result where `wanted` is "same", else a refusal that contains `wanted`.
  static void expectCell(const std::string& cell, const std::string& wanted,
                         const ProcessResult& result, bool is_same) {
    if (wanted == "same") {
      EXPECT_EQ(result.exit_code, 0) << cell << "\n" << result.err;
      EXPECT_TRUE(is_same) << cell << ": another result\n" << result.out;
      return;
    }
    EXPECT_TRUE(result.exit_code == 65 || result.exit_code == 78)
        << cell << ": " << result.exit_code << "\n"
        << result.out << result.err;
    EXPECT_NE(result.err.find(wanted), std::string::npos) << cell << "\n" << result.err;
  }
};

TEST_F(MeaningTest, EachChangeGivesEachVerbTheSameResultOrARefusal) {
  folder_.write("t.csv", tableOf({"a", "b", "city", "kind"}));
  const std::string file = write({});
  ASSERT_EQ(verb({"up", file, "-q"}).exit_code, 0);
  std::filesystem::copy(folder_.path() + "/runs/job", folder_.path() + "/kept",
                        std::filesystem::copy_options::recursive);
  const std::string asked = folder_.write("asked.csv", tableOf({"city", "b", "a"}));
  const std::string evaluation = verb({"eval", file, "--json"}).out;
  const std::string prediction = verb({"predict", file, "--input", asked, "--json"}).out;
  ASSERT_NE(evaluation.find("\"accuracy\""), std::string::npos) << evaluation;
  ASSERT_NE(prediction.find("probabilities"), std::string::npos) << prediction;

  for (const Change& change : changes()) {
    restoreRun();
    folder_.write("t.csv", tableOf(change.columns, change.has_header));
    write(change.said);
    const ProcessResult evaluated = verb({"eval", file, "--json"});
    expectCell(change.what + " x eval", change.evaluated, evaluated,
               lossOf(evaluated.out) == lossOf(evaluation));
    const ProcessResult of_eval = verb({"predict", file, "--json"});
    expectCell(change.what + " x predict of data.eval", change.evaluated, of_eval, true);
    const ProcessResult predicted = verb({"predict", file, "--input", asked, "--json"});
    expectCell(change.what + " x predict", change.predicted, predicted,
               predicted.out == prediction);
    const ProcessResult resumed = verb({"up", file, "-q", "--set", "train.steps=60"});
    expectCell(change.what + " x up", change.resumed, resumed, true);
  }
}

// Each format of weights keeps the meaning of their numbers.
TEST_F(MeaningTest, WhatIsExportedIsImportedToTheSameNumbersOrRefused) {
  folder_.write("t.csv", tableOf({"a", "b", "city", "kind"}));
  std::string file = write({});
  ASSERT_EQ(verb({"up", file, "-q"}).exit_code, 0);
  const std::string evaluation = verb({"eval", file, "--json"}).out;
  for (const char* name : {"w.safetensors", "w.npz", "w.onnx"}) {
    folder_.write("t.csv", tableOf({"a", "b", "city", "kind"}));
    write({});
    ASSERT_EQ(verb({"export", file, "--to", name}).exit_code, 0) << name;
    write({}, "other");
    std::filesystem::remove_all(folder_.path() + "/runs/other");
    const ProcessResult imported = verb({"import", file, "--from", name});
    EXPECT_EQ(imported.exit_code, 0) << imported.err;
    const ProcessResult again = verb({"eval", file, "--json"});
    EXPECT_EQ(lossOf(again.out), lossOf(evaluation)) << again.err;
    folder_.write("t.csv", tableOf({"b", "a", "city", "kind"}));
    std::filesystem::remove_all(folder_.path() + "/runs/other");
    const ProcessResult refused = verb({"import", file, "--from", name});
    EXPECT_EQ(refused.exit_code, 78) << name << refused.out;
    EXPECT_NE(refused.err.find("trained on the columns a, b, and"), std::string::npos)
        << refused.err;
  }
}

// Only the run's folder is needed afterwards.
TEST_F(MeaningTest, TheTrainingTableIsNotNeededAfterwards) {
  folder_.write("t.csv", tableOf({"a", "b", "city", "kind"}));
  const std::string file = write({});
  ASSERT_EQ(verb({"up", file, "-q"}).exit_code, 0);
  const std::string asked = folder_.write("asked.csv", tableOf({"city", "b", "a"}));
  const std::string prediction = verb({"predict", file, "--input", asked, "--json"}).out;
  std::filesystem::remove(folder_.path() + "/t.csv");
  const ProcessResult predicted = verb({"predict", file, "--input", asked, "--json"});
  EXPECT_EQ(predicted.exit_code, 0) << predicted.err;
  EXPECT_EQ(predicted.out, prediction);
  EXPECT_EQ(verb({"export", file, "--to", "w.onnx"}).exit_code, 0);
}

}  // namespace dtf::testing
