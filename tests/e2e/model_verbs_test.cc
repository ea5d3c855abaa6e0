// dtf-launch eval, predict, export, import: the verbs that use a trained model without its cluster.

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "common/base/json.h"
#include "tests/e2e/cluster_fixture.h"

namespace dtf::testing {

using std::chrono::seconds;

class ModelVerbsTest : public ClusterTest {
 protected:
  static ClusterOptions options() {
    ClusterOptions options;
    options.mode = "sync";
    options.eval_examples = 333;  // no multiple of a batch
    options.train_more = "  checkpoint: {every_steps: 20}\n";
    return options;
  }

  ProcessResult verb(const std::string& name, const std::string& file,
                     std::vector<std::string> more = {}) {
    std::vector<std::string> argv = {binary("dtf-launch"), name, file};
    argv.insert(argv.end(), more.begin(), more.end());
    return runProcess(std::move(argv), seconds(60), {}, folder_.path());
  }

  Json evalOf(const std::string& file, std::vector<std::string> more = {}) {
    more.push_back("--json");
    const ProcessResult result = verb("eval", file, std::move(more));
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return Json::parse(result.out);
  }
};

// Variables that are split over the ps, moving averages, and layers that training alone has.
TEST_F(ModelVerbsTest, EvalSaysWhatTheJobsLastEvaluationSaid) {
  ClusterOptions averaged = options();
  averaged.optimizer = "{adam: {learning_rate: 0.01, moving_average: {decay: 0.9}}}";
  averaged.layers =
      "[flatten: , dense: {units: 30, activation: relu}, dropout: {rate: 0.4}, dense: {units: 10, "
      "name: softmax}]";
  averaged.train_more += "  placement: {partition: {min_bytes: 4096}}\n";
  averaged.metrics = "[accuracy, top_5, auc, recall]";
  ClusterOptions rounded = options();
  rounded.replication_more = ", transfer_dtype: bfloat16";
  for (const ClusterOptions& each : {options(), averaged, rounded}) {
    std::filesystem::remove_all(folder_.path() + "/runs");
    const std::string file = writeCluster(each);
    const ProcessResult trained = launch(file);
    ASSERT_EQ(trained.exit_code, 0) << trained.err;
    const Json said = evalOf(file);
    EXPECT_EQ(said["step"], 40);
    EXPECT_EQ(said["examples"], 333);
    EXPECT_EQ(said["loss"].asDouble(), summary()["eval"]["loss"].asDouble());
    EXPECT_EQ(said["accuracy"].asDouble(), summary()["eval"]["accuracy"].asDouble());
    for (const char* metric : {"top_5", "auc", "recall"}) {
      ASSERT_EQ(said.contains(metric), each.metrics == averaged.metrics) << metric;
      if (!said.contains(metric)) continue;
      EXPECT_EQ(said[metric].asDouble(), summary()["eval"][metric].asDouble()) << metric;
      EXPECT_GT(said[metric].asDouble(), 0.1) << metric;
    }
    EXPECT_EQ(said["moving_averages"], each.optimizer == averaged.optimizer);
    const ProcessResult text = verb("eval", file);
    EXPECT_TRUE(text.out.starts_with("job: step 40: accuracy ")) << text.out;
    EXPECT_NE(text.out.find(" on 333 examples\n"), std::string::npos) << text.out;
    EXPECT_EQ(text.out.find(", top_5 0.") != std::string::npos, said.contains("top_5")) << text.out;

    EXPECT_EQ(evalOf(file, {"--checkpoint", "20"})["step"], 20);
    EXPECT_NE(evalOf(file, {"--checkpoint", "20"})["loss"], said["loss"]);
    const std::string newest = folder_.path() + "/runs/job/checkpoints/step-40";
    EXPECT_EQ(said["checkpoint"], newest);
    EXPECT_EQ(evalOf(file, {"--checkpoint", newest})["loss"], said["loss"]);
  }
}

// Predicts the evaluation data, then a file of images.
TEST_F(ModelVerbsTest, PredictNamesAClassForEachExample) {
  ClusterOptions learned = options();
  learned.steps = 200;
  learned.train_more = "  checkpoint: {every_steps: 100}\n";
  const std::string file = writeCluster(learned);
  ASSERT_EQ(launch(file).exit_code, 0);
  const ProcessResult lines = verb("predict", file, {"--json"});
  ASSERT_EQ(lines.exit_code, 0) << lines.err;
  std::istringstream read(lines.out);
  int examples = 0;
  for (std::string line; std::getline(read, line); ++examples) {
    const Json said = Json::parse(line);
    EXPECT_EQ(said["example"], examples);
    ASSERT_EQ(said["probabilities"].size(), 10u);
    double sum = 0;
    for (const Json& probability : said["probabilities"]) sum += probability.asDouble();
    EXPECT_NEAR(sum, 1, 1e-5);
    EXPECT_GE(said["probabilities"][said["class"].asUint64()].asDouble(), 0.1);
  }
  EXPECT_EQ(examples, 333);

  // 5 black images, as IDX.
  std::string images("\0\0\x08\x03\0\0\0\x05\0\0\0\x1c\0\0\0\x1c", 16);
  images.append(5 * 784, '\0');
  const std::string input = folder_.write("images-idx3-ubyte", images);
  const ProcessResult text = verb("predict", file, {"--input", input});
  EXPECT_EQ(text.exit_code, 0) << text.err;
  EXPECT_EQ(std::count(text.out.begin(), text.out.end(), '\n'), 6) << text.out;
  const std::string output = folder_.path() + "/predictions.csv";
  const ProcessResult written = verb("predict", file, {"--input", input, "--output", output});
  EXPECT_EQ(written.exit_code, 0) << written.err;
  EXPECT_NE(written.out.find("5 predictions in " + output), std::string::npos) << written.out;
  EXPECT_TRUE(folder_.read("predictions.csv").starts_with("example,class,probability_0,"));

  const std::string narrow = folder_.write("narrow", images.replace(15, 1, "\x0e"));
  EXPECT_EQ(verb("predict", file, {"--input", narrow}).exit_code, 65) << "more bytes than promised";
  images.resize(16 + 5 * 392);
  const ProcessResult other = verb("predict", file, {"--input", folder_.write("other", images)});
  EXPECT_EQ(other.exit_code, 78);
  EXPECT_NE(other.err.find("[28, 14]"), std::string::npos) << other.err;
  EXPECT_EQ(verb("predict", file, {"--output", "x.xls"}).exit_code, 2);
  EXPECT_EQ(verb("predict", file, {"--output", folder_.path() + "/no/x.csv"}).exit_code, 73);
  EXPECT_EQ(verb("predict", file, {"--input", folder_.path() + "/no"}).exit_code, 65);
}

// A table with an id that the job doesn't use, and a record that can't be read.
TEST_F(ModelVerbsTest, PredictKeepsColumnsOfATable) {
  folder_.write("t.csv", "a,b,kind\n1,2,no\n3,4,yes\n5,6,no\n7,8,yes\n");
  const std::string file = folder_.write(
      "table.yaml",
      "job: table\nrun_dir: runs/table\ntrain:\n"
      "  model: {input: {shape: [2]}, layers: [dense: {units: 1}], loss: binary_crossentropy}\n"
      "  data: {batch_size: 2, train: {format: csv, files: [t.csv], label_column: kind, "
      "class_names: [no, yes]}, eval: {format: csv, files: [t.csv], label_column: kind, "
      "class_names: [no, yes]}}\n  steps: 2\n");
  ASSERT_EQ(verb("up", file, {"-q"}).exit_code, 0);
  const std::string input =
      folder_.write("in.csv", "id,b,name,a\n007,2,\"Ann, B\",1\n8,x,Cid,3\n9,6,Dan,5\n");
  const ProcessResult csv =
      verb("predict", file, {"--input", input, "--keep", "id,name", "--output", "out.csv"});
  ASSERT_EQ(csv.exit_code, 0) << csv.err;
  std::istringstream lines(folder_.read("out.csv"));
  std::string title, first, second, third;
  std::getline(std::getline(std::getline(std::getline(lines, title), first), second), third);
  EXPECT_TRUE(title.starts_with("example,id,name,class,class_name,")) << title;
  EXPECT_TRUE(first.starts_with("0,007,\"Ann, B\",")) << first;
  EXPECT_TRUE(second.starts_with("1,8,Cid,,,,")) << second;
  EXPECT_TRUE(third.starts_with("2,9,Dan,")) << third;

  const ProcessResult json =
      verb("predict", file, {"--input", input, "--keep", "id", "--keep", "name", "--json"});
  ASSERT_EQ(json.exit_code, 0) << json.err;
  std::istringstream objects(json.out);
  std::vector<Json> said;
  for (std::string line; std::getline(objects, line);) said.push_back(Json::parse(line));
  ASSERT_EQ(said.size(), 3u) << json.out;
  EXPECT_EQ(said[0]["id"], "007");
  EXPECT_EQ(said[1]["id"], 8);
  EXPECT_TRUE(said[1].contains("error"));
  EXPECT_EQ(said[2]["name"], "Dan");

  EXPECT_EQ(said[0]["probability_of"], "yes");
  EXPECT_TRUE(title.ends_with(",p(yes),error")) << title;
  const ProcessResult text = verb("predict", file, {"--input", input});
  EXPECT_TRUE(text.out.starts_with("# example\tclass\tclass_name\tp(yes)\n")) << text.out;
  const ProcessResult evaluated = verb("predict", file, {"--keep", "a"});
  EXPECT_TRUE(evaluated.out.starts_with("# example\ta\ttruth\tclass\tclass_name\tp(yes)\n0\t1\tno"))
      << evaluated.out << evaluated.err;
  const ProcessResult unknown = verb("predict", file, {"--input", input, "--keep", "ident"});
  EXPECT_EQ(unknown.exit_code, 78) << unknown.out;
  EXPECT_NE(unknown.err.find("there is no column 'ident': the columns are id, b, name, a"),
            std::string::npos)
      << unknown.err;
}

TEST_F(ModelVerbsTest, EvalOfAJobThatRuns) {
  ClusterOptions endless = options();
  endless.steps = 100'000'000;
  endless.train_more = "  checkpoint: {every_steps: 20, keep: 1}\n";
  const std::string file = writeCluster(endless);
  Process launcher(launchCommand(file), {}, folder_.path());
  ASSERT_TRUE(launcher.waitForOutput("event=checkpoint ", seconds(30))) << launcher.err();
  uint64_t step = 0;
  for (int i = 0; i < 5; ++i) {
    const auto newer = evalOf(file)["step"].asUint64();
    EXPECT_GE(newer, step);
    step = newer;
  }
  EXPECT_GT(step, 0u);
  EXPECT_EQ(verb("stop", file).exit_code, 0);
  EXPECT_EQ(launcher.wait(seconds(10)).exit_code, 0);
}

// Weights that one job has learned start another, through each format.
TEST_F(ModelVerbsTest, AJobStartsFromImportedWeights) {
  const std::string first = writeCluster(options(), "first");
  ASSERT_EQ(launch(first).exit_code, 0);
  const Json learned = evalOf(first);
  for (const std::string ending : {"safetensors", "npz", "onnx"}) {
    const std::string weights = folder_.path() + "/weights." + ending;
    ASSERT_EQ(verb("export", first, {"--to", weights}).exit_code, 0);
    const std::string file = writeCluster(options(), ending);
    const ProcessResult imported = verb("import", file, {"--from", weights});
    ASSERT_EQ(imported.exit_code, 0) << imported.err;
    EXPECT_NE(imported.out.find("used        softmax/weights [784, 10] from softmax/weights\n"),
              std::string::npos)
        << imported.out;
    const Json start = evalOf(file);
    EXPECT_EQ(start["step"], 0);
    EXPECT_EQ(start["loss"], learned["loss"]) << "the same bits";
    const ProcessResult trained = launch(file);
    EXPECT_EQ(trained.exit_code, 0) << trained.err;
    EXPECT_NE(trained.err.find("going on from the checkpoint of step 0"), std::string::npos)
        << trained.err;
    EXPECT_LT(evalOf(file)["loss"].asDouble(), learned["loss"].asDouble());
    EXPECT_EQ(verb("import", file, {"--from", weights}).exit_code, 78) << "it has checkpoints";
  }
  const std::string file = writeCluster(options(), "last");
  const std::string damaged = folder_.write("damaged.safetensors", "no such file");
  EXPECT_EQ(verb("import", file, {"--from", damaged}).exit_code, 65);
  EXPECT_EQ(verb("import", file).exit_code, 2);
}

TEST_F(ModelVerbsTest, CheckExportAndImportAnswerInJson) {
  const std::string file = writeCluster(options());
  const auto answer = [&](const std::string& name, const std::string& of, int exit_code,
                          std::vector<std::string> more = {}) {
    more.push_back("--json");
    const ProcessResult result = verb(name, of, std::move(more));
    EXPECT_EQ(result.exit_code, exit_code) << result.err;
    const Json said = Json::parse(result.out);
    EXPECT_EQ(said["event"], exit_code == 0 ? name : "error") << result.out;
    if (exit_code != 0) {
      EXPECT_EQ(said["exit_code"], exit_code);
      EXPECT_NE(result.err.find(said["message"].asString().substr(0, 40)), std::string::npos)
          << result.err;
    }
    return said;
  };
  const Json checked = answer("check", file, 0);
  EXPECT_EQ(checked["parameters"], 7850);
  EXPECT_EQ(checked["tasks"].size(), 4u);
  answer("check", folder_.write("wrong.yaml", "job: wrong\nclutser: {}\n"), 78);

  const std::string weights = folder_.path() + "/weights.npz";
  answer("export", file, 65, {"--to", weights});  // there is no checkpoint yet
  ASSERT_EQ(launch(file).exit_code, 0);
  const Json exported = answer("export", file, 0, {"--to", weights});
  EXPECT_EQ(exported["step"], 40);
  EXPECT_EQ(exported["variables"], 2);
  EXPECT_EQ(exported["bytes"], std::filesystem::file_size(weights));
  answer("export", file, 2, {"--to", folder_.path() + "/weights.doc"});

  const std::string other = writeCluster(options(), "other");
  answer("import", other, 65, {"--from", folder_.path() + "/none.npz"});
  const Json imported = answer("import", other, 0, {"--from", weights});
  EXPECT_EQ(imported["used"].size(), 2u) << imported;
}

TEST_F(ModelVerbsTest, MistakesAreSaidInWords) {
  const std::string file = writeCluster(options());
  const ProcessResult none = verb("eval", file, {"--json"});
  EXPECT_EQ(none.exit_code, 65);
  EXPECT_NE(none.err.find("there is no checkpoint in "), std::string::npos) << none.err;
  EXPECT_EQ(Json::parse(none.out)["event"], "error") << none.out;
  ASSERT_EQ(launch(file).exit_code, 0);

  const ProcessResult other = verb(
      "eval", file, {"--set", "train.model.layers=[flatten: , dense: {units: 12, name: softmax}]"});
  EXPECT_EQ(other.exit_code, 78);
  EXPECT_NE(other.err.find("is a checkpoint of another model"), std::string::npos) << other.err;
  EXPECT_NE(other.err.find("softmax/biases has shape [10] in the checkpoint, [12] in this job"),
            std::string::npos)
      << other.err;
  const ProcessResult missing = verb("eval", file, {"--checkpoint", "7"});
  EXPECT_EQ(missing.exit_code, 65);
  EXPECT_NE(missing.err.find("there are checkpoints of the steps 20, 40"), std::string::npos)
      << missing.err;
  const ProcessResult no_data = verb(
      "eval", file, {"--set", "train.data={train: {format: digits, count: 50}, batch_size: 10}"});
  EXPECT_EQ(no_data.exit_code, 78) << no_data.out;
  EXPECT_NE(no_data.err.find("names no data to evaluate"), std::string::npos) << no_data.err;
  EXPECT_EQ(verb("status", file, {"--checkpoint", "7"}).exit_code, 2);
}

}  // namespace dtf::testing
