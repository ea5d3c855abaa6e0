#include "tests/unit/launcher/keys_at_their_ends.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "common/cluster/schema.h"
#include "common/data/png_encoder.h"
#include "common/model/layer.h"
#include "common/model/layer_table.h"
#include "common/model/loss.h"
#include "tests/unit/data/npy_files.h"

namespace dtf::launcher {

namespace {

using Entries = std::vector<std::pair<std::string, std::string>>;

constexpr std::string_view kTasks =
    "cluster: {ps: ['localhost:1', 'localhost:2'], worker: ['localhost:3']}";
constexpr std::string_view kSomeModel =
    "model: {input: {shape: [28, 28, 1]}, layers: [flatten, dense: {units: 10}], loss: "
    "sparse_categorical_crossentropy}";
constexpr std::string_view kSomeData = "data: {train: {format: digits, count: 50}, batch_size: 10}";

constexpr std::string_view kWords =
    "train: {format: csv, files: [words.csv], label_column: y, feature_columns: [a], "
    "categorical_columns: {c: ";

// Each key has a line of its own, so that a mistake's place can be checked.
std::string jobWith(std::string_view more) {
  return fmt::format("{{{}, {}, train: {{{}, {}, steps: 5}}}}\n", more, kTasks, kSomeModel,
                     kSomeData);
}
std::string clusterOf(std::string_view cluster) {
  return fmt::format("{{cluster: {{{}}}, train: {{{}, {}}}}}\n", cluster, kSomeModel, kSomeData);
}
std::string trainWith(std::string_view more) {
  return fmt::format("{{{}, train: {{{}, {}, {}}}}}\n", kTasks, kSomeModel, kSomeData, more);
}
std::string trainOf(std::string_view model, std::string_view data) {
  return fmt::format("{{{}, train: {{model: {{{}}}, data: {{{}}}, steps: 5}}}}\n", kTasks, model,
                     data);
}
std::string layersOf(std::string_view layers, std::string_view more = "") {
  return trainOf(fmt::format("input: {{shape: [28, 28, 1]}}, layers: [{}, flatten: {{}}, dense: "
                             "{{units: 10, name: last}}], loss: sparse_categorical_crossentropy{}",
                             layers, more),
                 "train: {format: digits, count: 50}, batch_size: 10");
}
// Reads a table of numbers, two for each example.
std::string dataOf(std::string_view data, std::string_view shape = "[2]",
                   std::string_view layer = "flatten: {}") {
  return trainOf(
      fmt::format("input: {{shape: {}}}, layers: [{}, flatten: {{}}, dense: {{units: 10, "
                  "name: last}}], loss: sparse_categorical_crossentropy",
                  shape, layer),
      fmt::format("batch_size: 2, {}", data));
}

// The required settings of a layer.
Entries settingsOf(std::string_view layer) {
  if (layer == "reshape") return {{"target_shape", "[784]"}};
  if (layer == "dense") return {{"units", "3"}};
  if (layer == "conv2d") return {{"filters", "2"}, {"kernel_size", "3"}};
  if (layer == "depthwise_conv2d") return {{"kernel_size", "3"}};
  if (layer == "embedding") return {{"input_dim", "10"}, {"output_dim", "2"}, {"categories", "c"}};
  if (layer == "lstm") return {{"units", "3"}};
  if (layer == "dropout") return {{"rate", "0.5"}};
  if (layer == "normalization") return {{"mean", "[0.5]"}, {"std", "[2]"}};
  if (layer == "add" || layer == "multiply" || layer == "concatenate") return {{"with", "[a]"}};
  if (layer == "block" || layer == "residual")
    return {{"layers", "[conv2d: {filters: 1, kernel_size: 1}]"}};
  if (layer == "graph")
    return {{"ops", "[Relu: {name: r, inputs: [input]}]"}, {"output", "r"}, {"with", "[a]"}};
  return {};
}

std::string fileOfLayer(std::string_view layer) {
  if (layer == "embedding")
    return dataOf(std::string(kWords) + "{columns: [w], hash_bucket_size: 10}}}", "[1]",
                  "embedding: @");
  if (layer == "lstm") return layersOf("reshape: {target_shape: [28, 28]}, lstm: @");
  if (layer == "dense") return layersOf("flatten: {}, dense: @");
  return layersOf(
      fmt::format("conv2d: {{name: a, filters: 1, kernel_size: 1}}, conv2d: {{name: b, "
                  "filters: 1, kernel_size: 1}}, {}: @",
                  layer));
}

void addJobPlaces(std::vector<KeyPlace>& places) {
  using namespace cluster::schema;
  places.push_back({&kJob, "@\n",
                    Entries{{"cluster", "{ps: ['localhost:1'], worker: ['localhost:2']}"},
                            {"train", fmt::format("{{{}, {}}}", kSomeModel, kSomeData)}}});
  places.push_back({&kCluster,
                    fmt::format("{{cluster: @, train: {{{}, {}}}}}\n", kSomeModel, kSomeData),
                    Entries{{"ps", "['localhost:1']"}, {"worker", "['localhost:2']"}}});
  places.push_back(
      {&kTask, clusterOf("ps: ['localhost:1'], worker: [@]"), {{"address", "'localhost:2'"}}});
  places.push_back(
      {&kTask, clusterOf("ps: [@], worker: ['localhost:2']"), {{"address", "'localhost:1'"}}});
  places.push_back({&kTaskCount, clusterOf("ps: {count: 1}, worker: @"), {{"count", "2"}}});
  places.push_back({&kLaunch, jobWith("launch: @"), {}});
  places.push_back({&kLaunch, jobWith("launch: @"), {{"via", "ssh"}}});
  places.push_back(
      {&kLaunch, jobWith("launch: @"), Entries{{"via", "slurm"}, {"binary_dir", "/bin"}}});
  places.push_back({&kLaunch, jobWith("launch: @"), {{"via", "systemd"}}});
  places.push_back({&kLaunchCopy, jobWith("launch: {via: ssh, copy: @}"), {{"data", "true"}}});
  places.push_back(
      {&kLaunchHost, jobWith("launch: {via: ssh, hosts: [@]}"), {{"host", "localhost"}}});
  places.push_back({&kRestarts, jobWith("launch: {restarts: @}"), {}});
  places.push_back({&kTimeouts, jobWith("timeouts: @"), {}});
  places.push_back({&kDurability, jobWith("durability: @"), {}});
  places.push_back({&kSnapshot, jobWith("durability: {snapshot: @}"), {{"every_steps", "10"}}});
  places.push_back({&kMetrics, jobWith("metrics: @"), {{"port", "auto"}}});
  places.push_back({&kTraces, jobWith("traces: @"), {{"endpoint", "'http://localhost'"}}});
}

void addTrainPlaces(std::vector<KeyPlace>& places) {
  using namespace cluster::schema;
  const std::string model = std::string(kSomeModel.substr(sizeof("model:")));
  const std::string data = std::string(kSomeData.substr(sizeof("data:")));
  places.push_back({&kTrain, fmt::format("{{{}, train: @}}\n", kTasks),
                    Entries{{"model", model}, {"data", data}}});
  places.push_back({&kData, fmt::format("{{{}, train: {{{}, data: @}}}}\n", kTasks, kSomeModel),
                    Entries{{"train", "{format: digits, count: 50}"}, {"batch_size", "10"}}});
  places.push_back({&kAugment,
                    trainOf(model.substr(1, model.size() - 2),
                            "train: {format: digits, count: 50}, batch_size: 10, augment: @"),
                    {}});
  places.push_back({&kReplication, trainWith("replication: @"), {}});
  places.push_back({&kReplication, trainWith("replication: @"), {{"mode", "sync"}}});
  places.push_back({&kTransfer, trainWith("replication: {transfer: @}"), {}});
  places.push_back(
      {&kTopology, trainWith("replication: {mode: sync, topology: @}"), {{"hosts", "sum"}}});
  places.push_back(
      {&kReplication, trainWith("replication: @"), {{"mode", "bounded"}, {"staleness", "1"}}});
  places.push_back({&kPlacement, trainWith("placement: @"), {}});
  places.push_back({&kPartition, trainWith("placement: {partition: @}"), {}});
  places.push_back(
      {&kEval,
       fmt::format("{{{}, train: {{{}, data: {{train: {{format: digits, count: 50}}, "
                   "eval: {{format: digits, count: 20}}, batch_size: 10}}, eval: @}}}}\n",
                   kTasks, kSomeModel),
       {}});
  places.push_back({&kCheckpoint, trainWith("checkpoint: @"), {}});
  places.push_back(
      {&kEarlyStopping,
       fmt::format("{{{}, train: {{{}, data: {{train: {{format: digits, count: 50}}, "
                   "eval: {{format: digits, count: 20}}, batch_size: 10}}, eval: {{every_steps: "
                   "5}}, early_stopping: @}}}}\n",
                   kTasks, kSomeModel),
       {{"patience", "2"}}});
  places.push_back({&kSummaries, trainWith("summaries: @"), {}});
  places.push_back({&kReport, trainWith("report: @"), {}});
}

void addDataPlaces(std::vector<KeyPlace>& places) {
  using namespace cluster::schema;
  const std::string digits =
      trainOf(kSomeModel.substr(8, kSomeModel.size() - 9), "train: @, batch_size: 2");
  places.push_back({&kDataset, digits, Entries{{"format", "digits"}, {"count", "50"}}});
  places.push_back(
      {&kDataset, digits,
       Entries{{"format", "idx"}, {"images", "images.idx"}, {"labels", "labels.idx"}}});
  places.push_back({&kDataset, dataOf("train: @", "[32, 32, 3]"),
                    Entries{{"format", "cifar10"}, {"files", "[cifar.bin]"}}});
  places.push_back(
      {&kDataset,
       trainOf("input: {shape: [32, 32, 3]}, layers: [flatten: {}, dense: {units: 100, name: "
               "last}], loss: sparse_categorical_crossentropy",
               "batch_size: 2, train: @"),
       Entries{{"format", "cifar100"}, {"files", "[cifar100.bin]"}}});
  places.push_back({&kDataset, dataOf("train: @", "[16]"),
                    Entries{{"format", "synthetic"}, {"problem", "centres"}, {"classes", "3"}}});
  places.push_back({&kDataset, dataOf("train: @"),
                    Entries{{"format", "csv"}, {"files", "[table.csv]"}, {"label_column", "y"}}});
  places.push_back({&kDataset, dataOf("train: @"),
                    Entries{{"format", "npy"}, {"features", "x.npy"}, {"labels", "y.npy"}}});
  places.push_back(
      {&kDataset, dataOf("train: @"),
       Entries{{"format", "npz"}, {"archive", "a.npz"}, {"features", "x"}, {"labels", "y"}}});
  places.push_back({&kDataset, dataOf("train: @", "[8, 8, 3]"),
                    Entries{{"format", "images"}, {"folder", "folder"}}});
  places.push_back(
      {&kDataset, dataOf("train: @"), Entries{{"format", "libsvm"}, {"files", "[lines.svm]"}}});
  places.push_back({&kCategorical,
                    dataOf(std::string(kWords) + "@}}", "[1]",
                           "embedding: {input_dim: 10, output_dim: 2, categories: c}"),
                    Entries{{"columns", "[w]"}, {"hash_bucket_size", "10"}}});
  places.push_back({&kCategorical,
                    dataOf(std::string(kWords) + "@}}", "[1]",
                           "embedding: {input_dim: 10, output_dim: 2, categories: c}"),
                    Entries{{"columns", "[w]"}, {"hash_bucket_size", "9"}, {"split", "'|'"}}});
  places.push_back({&kVocabulary,
                    dataOf(std::string(kWords) + "{columns: [w], vocabulary: @}}}", "[1]",
                           "embedding: {input_dim: 10, output_dim: 2, categories: c}"),
                    Entries{{"from", "data"}, {"max_size", "5"}}});
  places.push_back({&kNumeric,
                    dataOf("train: {format: csv, files: [words.csv], label_column: y, "
                           "feature_columns: [a], numeric_columns: {a: @}}",
                           "[1]"),
                    {{"standardize", "true"}}});
  places.push_back(
      {&kClassNames,
       dataOf("train: {format: csv, files: [table.csv], label_column: y, class_names: @}"),
       {{"from", "data"}}});
  places.push_back({&kEvalSplit,
                    dataOf("train: {format: csv, files: [words.csv], label_column: y, "
                           "feature_columns: [a]}, eval_split: @",
                           "[1]"),
                    {{"fraction", "0.5"}}});
  places.push_back(
      {&kCategoricalArray,
       dataOf("train: {format: npz, archive: a.npz, features: x, labels: y, categorical_arrays: "
              "{c: @}}",
              "[2]", "embedding: {input_dim: 10, output_dim: 2, categories: c}"),
       {{"array", "y"}}});
}

void addOptimizerPlaces(std::vector<KeyPlace>& places) {
  using namespace cluster::schema;
  places.push_back({&kOptimizers, trainWith("optimizer: @"), {}});
  places.push_back({&kOptimizerCommon, trainWith("optimizer: {adam: @}"), {}});
  places.push_back(
      {&kMovingAverage, trainWith("optimizer: {adam: {moving_average: @}}"), {{"decay", "0.9"}}});
  for (const yaml::Key& each : kOptimizers.keys) {
    if (!each.available) continue;
    for (const yaml::Table* table : cluster::allTables())
      if (table->path == fmt::format("train.optimizer.{}", each.name))
        places.push_back({table, trainWith(fmt::format("optimizer: {{{}: @}}", each.name)),
                          each.name == "adamw" ? Entries{{"weight_decay", "0.01"}} : Entries{}});
  }
  const std::string rate = "optimizer: {momentum: {learning_rate: ";
  places.push_back({&kLearningRate, trainWith(rate + "@}}"), {}});
  places.push_back({&kConstantRate, trainWith(rate + "{constant: @}}}"), {{"initial", "0.1"}}});
  const Entries decaying = {{"initial", "0.1"}, {"decay_steps", "10"}};
  Entries exponential = decaying;
  exponential.emplace_back("decay_rate", "0.9");
  places.push_back({&kExponentialRate, trainWith(rate + "{exponential: @}}}"), exponential});
  places.push_back({&kPolynomialRate, trainWith(rate + "{polynomial: @}}}"), decaying});
  places.push_back({&kCosineRate, trainWith(rate + "{cosine: @}}}"), decaying});
}

void addModelPlaces(std::vector<KeyPlace>& places) {
  const std::string digits = "train: {format: digits, count: 50}, batch_size: 10";
  for (const yaml::Table* table : model::modelTables()) {
    const std::string_view path = table->path;
    if (path == "train.model")
      places.push_back({table, fmt::format("{{{}, train: {{{}, model: @}}}}\n", kTasks, kSomeData),
                        Entries{{"input", "{shape: [28, 28, 1]}"},
                                {"layers", "[flatten: {}, dense: {units: 10}]"},
                                {"loss", "sparse_categorical_crossentropy"}}});
    else if (path == "train.model.input")
      places.push_back(
          {table,
           trainOf("input: @, layers: [flatten: {}, dense: {units: 10}], loss: mse", digits),
           {{"shape", "[28, 28, 1]"}}});
    else if (path == "train.model.layers.N")
      places.push_back({table, layersOf("@"), {}});
    else if (path == "train.model.layers.N.TYPE")
      places.push_back(
          {table, layersOf("conv2d: {name: a, filters: 1, kernel_size: 1}, relu: @"), {}});
    else if (path == "train.model.blocks.NAME")
      places.push_back({table,
                        layersOf("b: {}", ", blocks: {b: @}"),
                        {{"layers", "[conv2d: {filters: 1, kernel_size: 1}]"}}});
    else if (path.find("kernel_initializer, ") != path.npos)
      places.push_back(
          {table, layersOf("conv2d: {filters: 2, kernel_size: 3, kernel_initializer: @}"), {}});
    else if (path.ends_with("kernel_regularizer"))
      places.push_back(
          {table, layersOf("conv2d: {filters: 2, kernel_size: 3, kernel_regularizer: @}"), {}});
    else if (path.ends_with("beside their own"))
      places.push_back({table, layersOf("flatten: {name: f}, dense: @"), {{"units", "3"}}});
    else if (path == "train.model.loss")
      places.push_back({table,
                        trainOf("input: {shape: [28, 28, 1]}, layers: [flatten: {}, dense: {units: "
                                "10}], loss: @",
                                digits),
                        {}});
  }
  for (const model::LayerType& type : model::layerTypes())
    places.push_back({type.keys, fileOfLayer(type.name), settingsOf(type.name)});
  for (const yaml::Table* table : model::lossTables()) {
    const std::string_view loss = table->path.substr(0, table->path.find(','));
    const size_t name = loss.rfind('.') + 1;
    if (!loss.starts_with("train.model.loss.")) continue;
    if (loss.substr(name) == "tensor") {
      places.push_back(
          {table,
           trainOf("input: {shape: [28, 28, 1]}, graph: {ops: [Reshape: {name: x, inputs: [input], "
                   "shape: [batch, 784]}, Variable: {name: w, shape: [784, 10], initializer: "
                   "zeros}, MatMul: {name: logits, inputs: [x, w]}, Mean: {name: own, inputs: "
                   "[logits]}], output: logits}, loss: {tensor: @}",
                   digits),
           {{"name", "own"}}});
      continue;
    }
    places.push_back({table,
                      trainOf(fmt::format("input: {{shape: [28, 28, 1]}}, layers: [flatten: {{}}, "
                                          "dense: {{units: 10}}], loss: {{{}: @}}",
                                          loss.substr(name)),
                              digits),
                      {}});
  }
}

std::string doubleQuoted(std::string_view text) {
  return fmt::format("\"{}\"", text);
}

// Values of a kind that no key has, of kinds that few keys have, and texts with a meaning
// elsewhere.
const std::vector<std::string>& anywhere() {
  static const std::vector<std::string> values = {"",
                                                  "~",
                                                  "[]",
                                                  "{}",
                                                  "[[]]",
                                                  "[{}]",
                                                  "[~]",
                                                  "[1, x]",
                                                  "{a: b}",
                                                  "{'': {}}",
                                                  "''",
                                                  "x",
                                                  "0",
                                                  "-1",
                                                  "1.5",
                                                  "1e308",
                                                  "-1e308",
                                                  "1e309",
                                                  "4.9e-324",
                                                  ".nan",
                                                  ".inf",
                                                  "-.inf",
                                                  "9223372036854775807",
                                                  "-9223372036854775808",
                                                  "18446744073709551616",
                                                  "true",
                                                  doubleQuoted(std::string(5000, 'x')),
                                                  doubleQuoted("\\e[31m\\a\\r\\n\\0"),
                                                  doubleQuoted("%s%n$(id) `id`"),
                                                  doubleQuoted("../../.."),
                                                  "/dev/null",
                                                  "/dev/zero",
                                                  "/",
                                                  "~/x",
                                                  "[" + doubleQuoted("\\e[2J") + "]",
                                                  "{" + doubleQuoted("\\e[2J") + ": {}}"};
  return values;
}

}  // namespace

std::vector<KeyPlace> keyPlaces() {
  std::vector<KeyPlace> places;
  addJobPlaces(places);
  addTrainPlaces(places);
  addDataPlaces(places);
  addOptimizerPlaces(places);
  addModelPlaces(places);
  return places;
}

void writeKeyFiles() {
  const auto write = [](const std::filesystem::path& name, std::string_view bytes) {
    if (name.has_parent_path()) std::filesystem::create_directories(name.parent_path());
    std::ofstream(name, std::ios::binary) << bytes;
  };
  write("table.csv", "a,b,y\n1,2,0\n3,4,1\n5,6,2\n7,8,0\n");
  write("lines.svm", "0 1:1\n1 2:1\n2 1:3 2:1\n0 1:2\n");
  write("words.csv", "a,w,y\n1,red,0\n3,green,1\n5,red,2\n7,blue,0\n");
  const std::string x = data::npyOf<float>("<f4", "(4, 2)", {1, 2, 3, 4, 5, 6, 7, 8});
  const std::string y = data::npyOf<int64_t>("<i8", "(4,)", {0, 1, 2, 0});
  write("x.npy", x);
  write("y.npy", y);
  write("a.npz", data::zipOf({{"x.npy", x}, {"y.npy", y}}, true));
  const std::string four("\0\0\0\x04", 4), side("\0\0\0\x1c", 4);
  write("images.idx", std::string("\0\0\x08\x03", 4) + four + side + side +
                          std::string(size_t{4} * 28 * 28, '\x10'));
  write("labels.idx", std::string("\0\0\x08\x01", 4) + four + std::string("\0\1\2\0", 4));
  write("cifar.bin", std::string(size_t{4} * 3073, '\x01'));
  write("cifar100.bin", std::string(size_t{4} * 3074, '\x01'));
  const std::vector<uint8_t> pixels(size_t{8} * 8 * 3, 7);
  const std::string png = data::encodePng(8, 8, 3, pixels);
  for (const char* name : {"folder/a/0.png", "folder/a/1.png", "folder/b/0.png"}) write(name, png);
}

std::vector<std::string> endsOf(const yaml::Key& key) {
  std::vector<std::string> values = anywhere();
  const auto add = [&values](auto value) { values.push_back(fmt::format("{}", value)); };
  const auto add_words = [&](std::string_view words) {
    std::istringstream stream{std::string(words)};
    for (std::string word; std::getline(stream, word, '|');) {
      values.push_back(word);
      values.push_back("[" + word + "]");
      values.push_back("{" + word + ": {}}");
    }
  };
  if (key.whole_max != 0) {
    for (const int64_t whole : {key.whole_min, key.whole_max}) {
      add(whole);
      values.push_back(fmt::format("[{}]", whole));
      values.push_back(fmt::format("[{}, {}, {}]", whole, whole, whole));
    }
    add(key.whole_min - 1);
    if (key.whole_max < INT64_MAX) add(key.whole_max + 1);
  }
  if (key.number.max != key.number.min) {
    add(key.number.min);
    add(key.number.max);
    add(key.number.max * 1.0000001);
    add(key.number.min - 1e-9);
    values.push_back(fmt::format("{{initial: {}}}", key.number.max));
  }
  add_words(key.choices);
  add_words(key.later_choices);
  return values;
}

}  // namespace dtf::launcher
