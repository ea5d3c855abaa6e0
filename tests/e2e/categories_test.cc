// Tables with users, items and words, as recommenders learn from: from the file to the prediction.

#include <signal.h>

#include <filesystem>
#include <string>
#include <vector>

#include "common/base/json.h"
#include "tests/e2e/cluster_fixture.h"

namespace dtf::testing {

using std::chrono::seconds;

class CategoriesTest : public ClusterTest {
 protected:
  // Users with an even number like comedies, the others dramas.
  std::string table(int records, int first) const {
    std::string text = "user,genre,age,likes\n";
    for (int i = first; i < first + records; ++i) {
      const int user = i * 7 % 40;
      const bool comedy = i / 3 % 2 == 0;
      text += "user-" + std::to_string(user) + (comedy ? ",comedy," : ",drama,") +
              std::to_string(i % 10) + "," + ((user % 2 == 0) == comedy ? "1\n" : "0\n");
    }
    return text;
  }

  std::string columns() const {
    return "label_column: likes, categorical_columns: {user: {columns: [user], hash_bucket_size: "
           "5000}, genre: {columns: [genre], vocabulary_list: [drama, comedy]}}";
  }

  std::string writeJob(const std::string& name = "job", const std::string& more = "",
                       const std::string& data = "") {
    folder_.write("train.csv", table(1200, 0));
    folder_.write("eval.csv", table(300, 5000));
    const std::string given = data.empty() ? columns() : data;
    return folder_.write(
        name + ".yaml",
        "job: " + name + "\nrun_dir: " + folder_.path() + "/runs/" + name +
            "\ncluster: {ps: [localhost:auto, localhost:auto], worker: [localhost:auto, "
            "localhost:auto]}\n" +
            more +
            "train:\n"
            "  model:\n"
            "    input: {shape: [1]}\n"
            "    layers:\n"
            "      - dense: {units: 4, name: numbers}\n"
            "      - embedding: {categories: user, input_dim: 5000, output_dim: 4, combiner: sum, "
            "name: user}\n"
            "      - embedding: {categories: genre, input_dim: 3, output_dim: 4, combiner: sum, "
            "name: genre}\n"
            "      - multiply: {with: [user], name: match}\n"
            "      - concatenate: {with: [numbers, user]}\n"
            "      - dense: {units: 1, name: likes}\n"
            "    loss: binary_crossentropy\n"
            "    metrics: [accuracy]\n"
            "  data:\n"
            "    batch_size: 40\n"
            "    train: {format: csv, files: [" +
            folder_.path() + "/train.csv], " + given +
            "}\n"
            "    eval: {format: csv, files: [" +
            folder_.path() + "/eval.csv], " + given +
            "}\n"
            "  optimizer: {adam: {learning_rate: 0.02}}\n"
            "  replication: {mode: sync}\n"
            "  steps: 300\n"
            "  checkpoint: {every_steps: 100}\n");
  }

  ProcessResult verb(const std::string& name, const std::string& file,
                     std::vector<std::string> more = {}) {
    std::vector<std::string> argv = {binary("dtf-launch"), name, file};
    argv.insert(argv.end(), more.begin(), more.end());
    return runProcess(std::move(argv), seconds(60), {}, folder_.path());
  }
};

TEST_F(CategoriesTest, AreLearntEvaluatedAndPredicted) {
  const std::string file = writeJob();
  const ProcessResult checked = verb("check", file);
  EXPECT_EQ(checked.exit_code, 0) << checked.err;
  EXPECT_NE(checked.out.find("trains on 1200 examples, evaluates on 300 examples"),
            std::string::npos)
      << checked.out;
  const ProcessResult trained = launch(file);
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  EXPECT_GT(summary()["eval"]["accuracy"].asDouble(), 0.99);
  const ProcessResult evaluated = verb("eval", file, {"--json"});
  EXPECT_EQ(Json::parse(evaluated.out)["loss"].asDouble(), summary()["eval"]["loss"].asDouble());
  // Columns are found by name, in any order; the label may be missing.
  folder_.write("people.csv", "genre,age,user\ncomedy,1,user-2\ndrama,1,user-2\ndrama,1,user-3\n");
  const ProcessResult said =
      verb("predict", file, {"--input", folder_.path() + "/people.csv", "--json"});
  ASSERT_EQ(said.exit_code, 0) << said.err;
  std::string classes;
  for (size_t at = 0; (at = said.out.find("\"class\":", at)) != std::string::npos; ++at)
    classes += said.out[at + 8];
  EXPECT_EQ(classes, "101") << said.out;
}

// A misspelt word has a probability like any other.
TEST_F(CategoriesTest, WordsThatTheListLacksAreToldOf) {
  std::string listed = columns();
  const std::string list = "[drama, comedy]";
  listed.insert(listed.find(list) + list.size(), ", num_oov_buckets: 1");
  const std::string file = writeJob("job", "", listed);
  const std::string set =
      "2 words in column 'genre' are not of its vocabulary_list (first: 'Drama' "
      "in ";
  const std::string likes =
      "user,genre,age,likes\nuser-1,Drama,1,0\nuser-1,drama,1,1\n"
      "user-3,horror,2,1\n";
  folder_.write("eval.csv", likes);
  const ProcessResult trained = launch(file);
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  const std::string began = "they take the row for other words, which no example to train on has";
  for (const std::string& part : {set, began})
    EXPECT_NE((trained.out + trained.err).find(part), std::string::npos) << trained.err;
  const ProcessResult evaluated = verb("eval", file, {"--json"});
  EXPECT_NE(evaluated.err.find(set), std::string::npos) << evaluated.err;
  EXPECT_EQ(Json::parse(evaluated.out)["other_words"], 2);
  const std::string out = folder_.path() + "/out.csv";
  const ProcessResult said =
      verb("predict", file, {"--input", folder_.path() + "/eval.csv", "--output", out, "--json"});
  EXPECT_EQ(said.exit_code, 0) << said.err;
  EXPECT_NE(said.err.find(set), std::string::npos) << said.err;
  EXPECT_EQ(Json::parse(said.out)["other_words"], 2);
}

// Each batch fetches the rows it names from all ps, through shared memory or a socket.
TEST_F(CategoriesTest, TheBytesOfAJobDoNotDependOnHowItsRowsTravel) {
  ASSERT_EQ(launch(writeJob("shared")).exit_code, 0);
  const std::string digest = summary("shared").stringAt("parameters_digest");
  ASSERT_EQ(launch(writeJob("sent", "shared_memory: false\n")).exit_code, 0);
  EXPECT_EQ(summary("sent")["parameters_digest"], digest);
  const std::string alone = writeJob("one");
  ASSERT_EQ(launch(alone, {"--set", "cluster.ps=[localhost:auto]"}).exit_code, 0);
  EXPECT_EQ(summary("one")["parameters_digest"], digest);
}

TEST_F(CategoriesTest, AStoppedJobGoesOnToTheBytesOfAnUndisturbedOne) {
  const std::vector<std::string> longer = {"--set", "train.steps=30000"};
  ASSERT_EQ(launch(writeJob("calm"), longer).exit_code, 0);
  const std::string file = writeJob("disturbed");
  Process first(launchCommand(file, longer), {}, folder_.path());
  ASSERT_TRUE(first.waitForOutput("event=checkpoint step=100", seconds(30))) << first.err();
  first.signal(SIGINT);
  EXPECT_EQ(first.wait(seconds(30)).exit_code, 128 + SIGINT);
  const ProcessResult second = launch(file, longer);
  EXPECT_EQ(second.exit_code, 0) << second.err;
  EXPECT_NE(second.err.find("going on from the checkpoint of step"), std::string::npos);
  EXPECT_EQ(summary("disturbed")["parameters_digest"], summary("calm")["parameters_digest"]);
}

// Another vocabulary order or number of buckets gives the rows another meaning.
TEST_F(CategoriesTest, ACheckpointIsOfItsWordsAndBuckets) {
  ASSERT_EQ(launch(writeJob()).exit_code, 0);
  const std::string reversed =
      "label_column: likes, categorical_columns: {user: {columns: [user], hash_bucket_size: 5000}, "
      "genre: {columns: [genre], vocabulary_list: [comedy, drama]}}";
  const std::string fewer =
      "label_column: likes, categorical_columns: {user: {columns: [user], hash_bucket_size: 4000}, "
      "genre: {columns: [genre], vocabulary_list: [drama, comedy]}}";
  for (const std::string& data : {reversed, fewer}) {
    const std::string file = writeJob("job", "", data);
    for (const char* name : {"eval", "predict"}) {
      const ProcessResult refused = verb(name, file);
      EXPECT_EQ(refused.exit_code, 78) << name;
      EXPECT_NE(refused.err.find("is a checkpoint of another model"), std::string::npos)
          << refused.err;
    }
    const ProcessResult resumed = launch(file, {"--set", "train.steps=400"});
    EXPECT_EQ(resumed.exit_code, 78) << resumed.err;
  }
  // The order of the categorical columns does not matter.
  const std::string swapped =
      "label_column: likes, categorical_columns: {genre: {columns: [genre], vocabulary_list: "
      "[drama, comedy]}, user: {columns: [user], hash_bucket_size: 5000}}";
  EXPECT_EQ(verb("eval", writeJob("job", "", swapped)).exit_code, 0);
}

TEST_F(CategoriesTest, AnEvaluationReadsTheColumnsThatTrainingDoes) {
  const std::string file = writeJob();
  std::string text = folder_.read("job.yaml");
  const size_t eval = text.find("eval: {format");
  const size_t column = text.find("columns: [user]", eval);
  text.replace(column, 15, "columns: [genre]");
  text.replace(text.find("columns: [genre], vocabulary_list", column + 20), 16, "columns: [user]");
  folder_.write("job.yaml", text);
  const ProcessResult refused = verb("check", file);
  EXPECT_NE(refused.exit_code, 0);
  EXPECT_NE(refused.err.find("user: the model was trained on the column user, and "),
            std::string::npos)
      << refused.err;
}

TEST_F(CategoriesTest, WhatNoLayerReadsIsAWarning) {
  const std::string extra =
      "label_column: likes, feature_columns: [], categorical_columns: {age: {columns: [age]}, "
      "user: "
      "{columns: [user], hash_bucket_size: 5000}, genre: {columns: [genre], vocabulary_list: "
      "[drama, comedy]}}";
  std::string text = folder_.read(writeJob("job", "", extra).substr(folder_.path().size() + 1));
  const std::string dense = "      - dense: {units: 4, name: numbers}\n";
  text.erase(text.find(dense), dense.size());
  const size_t joined = text.find("[numbers, user]");
  folder_.write("job.yaml", text.replace(joined, 15, "[user]"));
  const ProcessResult warned = verb("check", folder_.path() + "/job.yaml");
  EXPECT_EQ(warned.exit_code, 0) << warned.err;
  EXPECT_NE(warned.err.find("warning: no layer reads the categories 'age' of the data"),
            std::string::npos)
      << warned.err;
}

TEST_F(CategoriesTest, WhatIsWrongIsSaidBeforeTheStart) {
  const auto refused = [this](const std::string& data) {
    const ProcessResult result = verb("check", writeJob("bad", "", data));
    EXPECT_NE(result.exit_code, 0) << result.out;
    return result.err;
  };
  EXPECT_NE(refused("label_column: likes, categorical_columns: {user: {columns: [user]}, genre: "
                    "{columns: [genre], vocabulary_list: [drama, comedy]}}")
                .find("train.csv:2:1: 'user-0' in column 'user' is no whole number from 0 (for "
                      "words there are hash_bucket_size and vocabulary_list)"),
            std::string::npos);
  EXPECT_NE(refused("label_column: likes, categorical_columns: {user: {columns: [user], "
                    "hash_bucket_size: 9000}, genre: {columns: [genre], vocabulary_list: [drama, "
                    "comedy]}}")
                .find("layer 'user' has a vocabulary of 5000, and the categories 'user' are from 0 "
                      "to 8999: give it at least 9000"),
            std::string::npos);
  EXPECT_NE(refused("label_column: likes, categorical_columns: {user: {columns: [user], "
                    "hash_bucket_size: 9}, genre: {columns: [genre], vocabulary_list: [comedy]}}")
                .find("'drama' in column 'genre' is none of the vocabulary_list"),
            std::string::npos);
  EXPECT_NE(
      refused("label_column: likes, categorical_columns: {user: {columns: [user], "
              "hash_bucket_size: 9}}, feature_columns: [age]")
          .find("layer 'genre' reads the categories 'genre', and there are none of that name"),
      std::string::npos);
}

// Columns have numbers; those behind the label shift when it is missing.
TEST_F(CategoriesTest, ATableWithoutAHeaderIsPredictedWithAndWithoutItsLabel) {
  std::string records, unlabelled;
  for (int i = 0; i < 800; ++i) {
    const std::string rest = std::to_string(i % 7) + "," + std::to_string(i % 2);
    records += std::to_string(i % 2) + "," + rest + "\n";
    if (i < 6) unlabelled += rest + "\n";
  }
  folder_.write("t.csv", records);
  folder_.write("with.csv", records.substr(0, unlabelled.size() + 12));
  folder_.write("without.csv", unlabelled);
  const std::string file = folder_.write(
      "plain.yaml",
      "job: plain\nrun_dir: " + folder_.path() +
          "/runs/plain\ncluster: {ps: [localhost:auto], worker: [localhost:auto]}\n"
          "train:\n"
          "  model:\n"
          "    input: {shape: [1]}\n"
          "    layers:\n"
          "      - dense: {units: 2, name: number}\n"
          "      - embedding: {categories: sign, input_dim: 9, output_dim: 2, combiner: sum}\n"
          "      - concatenate: {with: [number]}\n"
          "      - dense: {units: 1}\n"
          "    loss: binary_crossentropy\n"
          "  data:\n"
          "    batch_size: 40\n"
          "    train: {format: csv, header: false, files: [" +
          folder_.path() +
          "/t.csv], label_column: 1, categorical_columns: {sign: {columns: [3]}}}\n"
          "  optimizer: {adam: {learning_rate: 0.05}}\n"
          "  steps: 300\n"
          "  checkpoint: {every_steps: 1000}\n");
  ASSERT_EQ(launch(file).exit_code, 0);
  const auto predicted = [&](const std::string& name) {
    const ProcessResult result = verb("predict", file, {"--input", folder_.path() + "/" + name});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return result.out;
  };
  const auto outputs = [&](const std::string& name) {
    const std::string to = folder_.path() + "/" + name + ".npy";
    EXPECT_EQ(
        verb("predict", file, {"--input", folder_.path() + "/" + name, "--output", to}).exit_code,
        0);
    return folder_.read(name + ".npy");
  };
  EXPECT_EQ(outputs("with.csv"), outputs("without.csv"));
  EXPECT_NE(predicted("with.csv").find("\n1\t1\t1\t"), std::string::npos) << "the truth, too";
  EXPECT_NE(predicted("without.csv").find("\n1\t1\t"), std::string::npos)
      << predicted("without.csv");
}

TEST_F(CategoriesTest, FilesWithoutThemAreRefusedByPredict) {
  const std::string file = writeJob();
  ASSERT_EQ(launch(file).exit_code, 0);
  folder_.write("p.csv", "age,user\n1,user-2\n");
  const ProcessResult missing = verb("predict", file, {"--input", folder_.path() + "/p.csv"});
  EXPECT_EQ(missing.exit_code, 78);
  EXPECT_NE(missing.err.find("it has no column 'genre', which the model is trained on"),
            std::string::npos)
      << missing.err;
}

}  // namespace dtf::testing
