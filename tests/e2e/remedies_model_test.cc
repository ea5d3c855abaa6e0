// Remedies of messages about models, optimizers and the job's file. These are not tried:
// - an orthogonal initial value beyond the bound (its layer has more than 10^8 parameters);
// - "use more ps, or without ps more workers" (shards beyond 120 GiB);
// - a smaller batch_size against 2^31 elements;
// - an unset HOME for '~'.

#include "tests/e2e/remedies_fixture.h"

namespace dtf::testing {

namespace {

constexpr const char* kTableJob =
    "job: job\nrun_dir: run\ncluster: {worker: [local]}\ntrain:\n"
    "  model: {input: {shape: [2]}, layers: [dense: {units: 2, name: d}], loss: "
    "sparse_categorical_crossentropy}\n"
    "  data: {batch_size: 2, train: {format: csv, files: [t.csv], label_column: y}}\n"
    "  steps: 2\n";
const std::map<std::string, std::string> kModelTable = {{"t.csv", "a,b,y\n1,2,0\n3,4,1\n5,6,0\n"}};

constexpr const char* kImageJob =
    "job: job\nrun_dir: run\ncluster: {worker: [local]}\ntrain:\n"
    "  model:\n    input: {shape: [28, 28, 1]}\n    layers: [flatten, dense: {units: 10}]\n"
    "    loss: sparse_categorical_crossentropy\n"
    "  data: {batch_size: 2, train: {format: digits, count: 20}}\n"
    "  optimizer: adam\n  steps: 2\n";

Edits layers(const std::string& list) {
  return {.job = {{"[flatten, dense: {units: 10}]", list}}};
}
// The table's model with a numeric target.
Edits targets(const std::string& loss, const std::string& metrics = "") {
  return {.job = {{"label_column: y", "target_columns: [y]"},
                  {"units: 2", "units: 1"},
                  {"sparse_categorical_crossentropy", loss + metrics}}};
}

std::vector<Remedy> remediesOfLayers() {
  const std::string conv = "conv2d: {filters: 2, kernel_size: 3, strides: 2, padding: same}";
  return {
      {"add a 'dense' layer",
       layers("[flatten]"),
       {.job = {{"[flatten]", "[flatten, dense: {units: 10}]"}}}},
      {"end with 'flatten' and 'dense'",
       layers("[" + conv + "]"),
       {.job = {{"same}]", "same}, flatten, dense: {units: 10}]"}}}},
      {"add 'flatten' before it",
       layers("[" + conv + ", dense: {units: 10}]"),
       {.job = {{", dense", ", flatten, dense"}}}},
      {"leave out its softmax",
       layers("[flatten, dense: {units: 10, activation: softmax}]"),
       {.job = {{", activation: softmax", ""}}}},
      {"pad them (padding: same)",
       layers("[max_pooling2d: {pool_size: 40}, flatten, dense: {units: 10}]"),
       {.job = {{"size: 40", "size: 40, padding: same"}}}},
      {"or use a smaller window",
       layers("[max_pooling2d: {pool_size: 40}, flatten, dense: {units: 10}]"),
       {.job = {{"size: 40", "size: 4"}}}},
      {"nothing reads layer 'lost': take it out",
       layers("[flatten: {name: f}, dense: {units: 3, name: lost}, dense: {units: 10, from: f}]"),
       {.job = {{"dense: {units: 3, name: lost}, ", ""}}}},
      {"or name it in 'from' or 'with' of another one",
       layers("[flatten: {name: f}, dense: {units: 3, name: lost}, dense: {units: 10, from: f}]"),
       {.job = {{"from: f", "from: lost"}}}},
      {"a conv2d with kernel_size 1 as 'shortcut'",
       layers("[residual: {layers: [" + conv + "]}, flatten, dense: {units: 10}]"),
       {.job = {{"same}]}",
                 "same}], shortcut: [conv2d: {filters: 2, kernel_size: 1, strides: 2}]}"}}}},
      {"put it first, or behind 'flatten' or 'reshape'",
       layers("[flatten, relu, embedding: {input_dim: 256, output_dim: 2, combiner: sum}, dense: "
              "{units: 10}]"),
       {.job = {{"relu, ", ""}}}},
      {"give one for each place, or one for all",
       layers("[normalization: {mean: [1, 2], std: [1]}, flatten, dense: {units: 10}]"),
       {.job = {{"[1, 2]", "[1]"}}}},
      {"give it at least 10",
       layers("[flatten, dense: {units: 9}]"),
       {.job = {{"units: 9", "units: 10"}}}},
      {"did you mean 'dense'?",
       layers("[flatten, dens: {units: 10}]"),
       {.job = {{"dens:", "dense:"}}}},
      {"leave out 'from'",
       layers("[flatten: {name: f}, embedding: {categories: c, from: f, input_dim: 2, output_dim: "
              "2}, dense: {units: 10}]"),
       {.job = {{", from: f", ""}}},
       "see categorical_columns"},
      {"is a layer: give the block another name",
       {.job = {{"    layers: [flatten,",
                 "    blocks: {dense: {layers: [relu]}}\n    layers: "
                 "[flatten,"}}},
       {.job = {{"{dense: {layers", "{mine: {layers"}}}},
      {"give the parameter another name",
       {.job = {{"    layers: [flatten, dense: {units: 10}]",
                 "    blocks: {mine: {parameters: {name: 10}, layers: [dense: {units: $name}]}}\n"
                 "    layers: [flatten, mine: {}]"}}},
       {.job = {{"{name: 10}", "{width: 10}"}, {"$name", "$width"}}}},
      {"set model.input.shape to [28, 28, 1]",
       {.job = {{"[28, 28, 1]", "[8, 8, 1]"}}},
       {.job = {{"[8, 8, 1]", "[28, 28, 1]"}}}},
  };
}

std::vector<Remedy> remediesOfLosses() {
  return {
      {"choose binary_crossentropy (each unit by itself)",
       targets("sparse_categorical_crossentropy"),
       {.job = {{"loss: sparse_categorical_", "loss: binary_"}}}},
      {"mean_absolute_error, huber or hinge",
       targets("sparse_categorical_crossentropy"),
       {.job = {{"sparse_categorical_crossentropy", "huber"}}}},
      {"leave them out",
       targets("{mse: {class_weights: [1, 2]}}"),
       {.job = {{": {class_weights: [1, 2]}", ": {}"}}}},
      {"leave it out; the evaluation's loss",
       targets("mse", ", metrics: [accuracy]"),
       {.job = {{", metrics: [accuracy]", ""}}}},
      {"give one for each class",
       {.job = {{"sparse_categorical_crossentropy",
                 "{sparse_categorical_crossentropy: {class_weights: [1, 2, 3]}}"}}},
       {.job = {{"[1, 2, 3]", "[1, 2]"}}}},
      {"give layer 'd' 2 units",
       {.job = {{"units: 2", "units: 1"}}},
       {.job = {{"units: 1", "units: 2"}}}},
      {"or choose binary_crossentropy for two classes",
       {.job = {{"units: 2", "units: 1"}}},
       {.job = {{"sparse_categorical_cross", "binary_cross"}}}},
      {"give it as many",
       {.job = {{"label_column: y", "target_columns: [y]"},
                {"sparse_categorical_crossentropy", "mse"}}},
       {.job = {{"units: 2", "units: 1"}}}},
      {"try a learning_rate smaller than",
       {.job = {{"label_column: y", "target_columns: [y]"},
                {"sparse_categorical_crossentropy", "mse"},
                {"units: 2", "units: 1"},
                {"steps: 2",
                 "steps: 50\n  optimizer: {gradient_descent: {learning_rate: 1000000}}"}},
        .argv = {"up", "-q"}},
       {.job = {{"1000000", "0.01"}}}},
      {"add 'eval' to 'data'",
       {.job = {{"steps: 2", "steps: 2\n  eval: {every_steps: 1}"}}},
       {.job = {{"y}}", "y}, eval: {format: csv, files: [t.csv], label_column: y}}"}}}},
  };
}

std::vector<Remedy> remediesOfTheFile() {
  const std::string two = "cluster: {ps: [localhost:auto], worker: [localhost:auto]}";
  const std::string one = "cluster: {worker: [local]}";
  const std::string three_examples = "worker: [{address: localhost:auto, devices: [cpu:0, cpu:1]}]";
  return {
      {"add a ps to the cluster",
       {.job = {{one, two + "\ndurability: replica"}}},
       {.job = {{"ps: [localhost:auto]", "ps: [localhost:auto, localhost:auto]"}}}},
      {"or choose checkpoint or snapshot",
       {.job = {{one, two + "\ndurability: replica"}}},
       {.job = {{"durability: replica", "durability: {snapshot: {every_steps: 1}}"}}}},
      {"write durability: checkpoint",
       {.job = {{one, two + "\ndurability: {checkpoint: {every_steps: 1}}"}}},
       {.job = {{"{checkpoint: {every_steps: 1}}", "checkpoint"}}}},
      {"leave 'durability' out",
       {.job = {{one, one + "\ndurability: {snapshot: {every_steps: 1}}"}}},
       {.job = {{"\ndurability: {snapshot: {every_steps: 1}}", ""}}}},
      {"choose a batch_size of 2 or 4",
       {.job = {{"worker: [local]", "ps: [localhost:auto], " + three_examples},
                {"batch_size: 2", "batch_size: 3"}}},
       {.job = {{"batch_size: 3", "batch_size: 4"}}}},
      {"did you mean 'worker'?",
       {.job = {{"worker:", "wroker:"}}},
       {.job = {{"wroker:", "worker:"}}}},
      {"write 10", {.job = {{"units: 10", "units: 010"}}}, {.job = {{"010", "10"}}}},
      {"write a text, or leave it out",
       {.job = {{"run_dir: run", "run_dir: ''"}}},
       {.job = {{"run_dir: ''\n", ""}}}},
      {"write the whole path",
       {.job = {{"run_dir: run", "run_dir: ~nobody/run"}}},
       {.job = {{"~nobody/run", "/nowhere/run"}}}},
      {"has no meaning here: remove it",
       {.job = {{"units: 10", "units: !int 10"}}},
       {.job = {{"!int ", ""}}}},
      {"a space is missing after 'steps:'",
       {.job = {{"steps: 2", "steps:2"}}},
       {.job = {{"steps:2", "steps: 2"}}}},
      {"indent the settings of 'adam' further",
       {.job = {{"optimizer: adam", "optimizer:\n    adam:\n    learning_rate: 0.1"}}},
       {.job = {{"    learning_rate", "      learning_rate"}}}},
      {"it belongs in train.optimizer.adam",
       {.job = {{"steps: 2", "steps: 2\n  learning_rate: 0.1"}}},
       {.job = {{"\n  learning_rate: 0.1", ""}, {"adam", "{adam: {learning_rate: 0.1}}"}}}},
      {"would let everyone who can connect read",
       {.job = {{one, "cluster: {ps: ['0.0.0.0:auto'], worker: [localhost:auto]}"}},
        .argv = {"up", "-q"}},
       {.job = {{"0.0.0.0", "localhost"}}}},
      {"or 'insecure: true' there",
       {.job = {{one, "cluster: {ps: ['0.0.0.0:auto'], worker: [localhost:auto]}"}},
        .argv = {"up", "-q"}},
       {.job = {{"job: job", "insecure: true\njob: job"}}}},
  };
}

std::vector<Remedy> remediesOfSet() {
  const auto set = [](const std::vector<std::string>& changes) {
    Edits edits{.argv = {"check"}};
    for (const std::string& change : changes) {
      edits.argv.push_back("--set");
      edits.argv.push_back(change);
    }
    return edits;
  };
  const std::string adagrad = "train.optimizer.adagrad.learning_rate=0.5";
  return {
      {"write --set train.steps=VALUE", set({"steps=5"}), set({"train.steps=5"})},
      {"write --set train.optimizer.adam.learning_rate=VALUE", set({"train.learning_rate=0.5"}),
       set({"train.optimizer.adam.learning_rate=0.5"})},
      {"write --set train.optimizer.adam.learning_rate=VALUE", set({"learning_rate=0.5"}),
       set({"train.optimizer.adam.learning_rate=0.5"})},
      {"settings of 'adam' are below its name, --set train.optimizer.adam.learning_rate=VALUE",
       set({"train.optimizer.learning_rate=0.5"}), set({"train.optimizer.adam.learning_rate=0.5"})},
      {"choose it first, --set train.optimizer=adagrad", set({adagrad}),
       set({"train.optimizer=adagrad", adagrad})},
      {"did you mean 'steps'?", set({"train.stpes=5"}), set({"train.steps=5"})},
      {"expected an index from 0 to 1", set({"cluster.worker.2=local"}),
       set({"cluster.worker.0=local"})},
      {"a key below them has dots, as in train.steps=50", set({"foo=5"}), set({"train.steps=50"})},
  };
}

}  // namespace

using RemediesModelTest = RemediesTest;

TEST_F(RemediesModelTest, OfLayers) {
  expectRemedies(kImageJob, {}, remediesOfLayers());
}

TEST_F(RemediesModelTest, OfLosses) {
  expectRemedies(kTableJob, kModelTable, remediesOfLosses());
}

TEST_F(RemediesModelTest, OfTheFile) {
  expectRemedies(kImageJob, {}, remediesOfTheFile());
}

TEST_F(RemediesModelTest, OfSet) {
  expectRemedies(kImageJob, {}, remediesOfSet());
}

}  // namespace dtf::testing
