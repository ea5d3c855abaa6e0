#include "common/cluster/read_train.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "common/cluster/schema.h"
#include "common/model/metrics.h"
#include "common/model/read_model.h"
#include "common/yaml/map_reader.h"

namespace dtf::cluster {

using yaml::inQuotes;
using yaml::MapReader;
using yaml::Place;
using yaml::readText;
using yaml::Report;
using yaml::reportType;
using yaml::YamlNode;

namespace {

constexpr size_t kVariableNameBytesMax = 256;

ReplicationSpec readReplication(const YamlNode& node, const TaskCounts& counts, Report& report) {
  const MapReader reader(node, schema::kReplication, node.key, report);
  ReplicationSpec replication;
  const bool mode_known =
      reader.choice("mode", replication.mode, 1) || node.find("mode") == nullptr;
  reader.whole("replicas_to_aggregate", replication.replicas_to_aggregate);
  const bool has_total = reader.whole("total_num_replicas", replication.total_num_replicas);
  const bool is_sync = replication.mode == ReplicationSpec::Mode::kSync;
  const bool is_bounded = replication.mode == ReplicationSpec::Mode::kBounded;
  if (mode_known && !is_sync) {
    for (const std::string_view key : {"replicas_to_aggregate", "total_num_replicas"})
      if (const YamlNode* given = node.find(key))
        report.error(given->key_place, inQuotes(key) + " has a meaning only with 'mode: sync'");
  }
  reader.whole("staleness", replication.staleness);
  const YamlNode* staleness = node.find("staleness");
  if (mode_known && !is_bounded && staleness != nullptr)
    report.error(staleness->key_place, "'staleness' has a meaning only with 'mode: bounded'");
  if (mode_known && is_bounded && staleness == nullptr)
    report.error(node.find("mode")->where(),
                 "'mode: bounded' needs 'staleness': how many steps a worker may be ahead of the "
                 "slowest");
  reader.boolean("overlap", replication.overlap);
  if (replication.overlap && mode_known && is_sync)
    report.error(node.find("overlap")->key_place,
                 "'overlap' needs 'mode: async' or 'mode: bounded': each gradient of a sync step "
                 "is computed from the "
                 "newest parameters");
  if (replication.overlap && counts.one_process)
    report.error(node.find("overlap")->key_place,
                 "'overlap' needs a ps, and the cluster has none: no gradient travels");
  reader.choice("transfer_dtype", replication.transfer_dtype, 0);
  if (replication.transfer_dtype != ReplicationSpec::TransferDtype::kFloat32 && counts.one_process)
    report.error(node.find("transfer_dtype")->key_place,
                 "'transfer_dtype' needs a ps, and the cluster has none: nothing travels");
  if (has_total && counts.worker > 0 && replication.total_num_replicas != counts.worker)
    report.error(node.find("total_num_replicas")->where(),
                 fmt::format("'total_num_replicas' must be the number of workers, {}, got {}",
                             counts.worker, replication.total_num_replicas));
  return replication;
}

// The N of "/job:ps/task:N"; nullopt: the text is something else.
std::optional<size_t> psTaskOf(std::string_view device) {
  constexpr std::string_view kPrefix = "/job:ps/task:";
  if (!device.starts_with(kPrefix)) return std::nullopt;
  const std::string_view digits = device.substr(kPrefix.size());
  size_t task = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), task);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return task;
}

void readPins(const YamlNode& node, const TaskCounts& counts, PlacementSpec& placement,
              Report& report) {
  if (!node.isMap()) reportType("a map", node.key, node, report);
  for (const YamlNode& pin : node.children) {
    if (!node.isMap()) break;
    if (pin.key.empty() || pin.key.size() > kVariableNameBytesMax) {
      report.error(pin.key_place, "a variable's name has from 1 to 256 characters");
      continue;
    }
    const std::optional<std::string> device = readText(pin, pin.key, report);
    if (!device) continue;
    const std::optional<size_t> task = psTaskOf(*device);
    if (!task) {
      report.error(pin.where(),
                   "a variable lives on a device like /job:ps/task:0, got " + inQuotes(*device));
    } else if (counts.ps > 0 && *task >= counts.ps) {
      report.error(pin.where(), fmt::format("there is no {}: the cluster has {} ps",
                                            inQuotes(*device), counts.ps));
    } else {
      placement.pins[pin.key] = TaskId{JobKind::kPs, static_cast<uint32_t>(*task)}.device();
      placement.pin_marks[pin.key] = report.markOf(pin.key_place);
    }
  }
}

PlacementSpec readPlacement(const YamlNode& node, const TaskCounts& counts, Report& report) {
  const MapReader reader(node, schema::kPlacement, node.key, report);
  PlacementSpec placement;
  reader.choice("strategy", placement.strategy);
  if (const YamlNode* pins = reader.find("pins")) readPins(*pins, counts, placement, report);
  const YamlNode* partition = reader.find("partition");
  if (partition == nullptr) return placement;
  if (partition->isScalar() && partition->text == "none") {
    placement.partition_min_bytes = 0;
  } else if (!partition->isMap()) {
    reportType("none or {min_bytes: N}", "partition", *partition, report);
  } else {
    MapReader(*partition, schema::kPartition, "partition", report)
        .whole("min_bytes", placement.partition_min_bytes);
  }
  return placement;
}

// Evaluations have these figures: the loss, and the metrics of the model.
std::vector<std::string> figuresOf(const model::ModelSpec& model) {
  std::vector<std::string> names = {"loss"};
  if (model.accuracy) names.emplace_back("accuracy");
  for (const model::MetricSpec& metric : model.metrics) names.push_back(model::nameOf(metric));
  return names;
}

// `key` needs evaluations while the job trains, with that metric.
void checkEvaluated(const TrainSpec& train, const std::string& metric, const std::string& key,
                    const Place& place, Report& report) {
  const std::vector<std::string> figures = figuresOf(train.model);
  if (std::find(figures.begin(), figures.end(), metric) == figures.end())
    report.error(place, fmt::format("the evaluations have no {} (they have {}): add it to "
                                    "model.metrics, or name one of these",
                                    inQuotes(metric), fmt::join(figures, ", ")));
  if (!train.data.eval || train.eval_every_steps == 0)
    report.error(place, inQuotes(key) +
                            " needs evaluations while the job trains: give 'data' an 'eval', and "
                            "set eval.every_steps");
}

// By time unless the file says by steps.
CheckpointSpec readCheckpointMap(const YamlNode& node, const TrainSpec& train, Report& report) {
  const MapReader reader(node, schema::kCheckpoint, "checkpoint", report);
  CheckpointSpec checkpoint;
  if (reader.find("every_steps") != nullptr) checkpoint.every_seconds = 0;
  reader.number("every_seconds", checkpoint.every_seconds);
  reader.whole("every_steps", checkpoint.every_steps);
  reader.whole("keep", checkpoint.keep);
  reader.number("keep_every_hours", checkpoint.keep_every_hours);
  reader.boolean("gather", checkpoint.gather);
  reader.boolean("stay", checkpoint.stay);
  if (checkpoint.gather && checkpoint.stay)
    report.error(
        node.find("stay")->where(),
        "'gather' and 'stay' can't both be true: the shards are at worker/0, or with the ps");
  if (reader.text("keep_best", checkpoint.keep_best))
    checkEvaluated(train, checkpoint.keep_best, "keep_best", reader.find("keep_best")->where(),
                   report);
  checkpoint.mark = report.markOf(node.key_place);
  return checkpoint;
}

// A file that leaves it out loses nothing that was learned: the chief saves as often as with {},
// and writes the files of all ps itself, since nobody has said that the ps see its run directory.
std::optional<CheckpointSpec> readCheckpoint(const YamlNode* node, const TrainSpec& train,
                                             Report& report) {
  if (node == nullptr) return CheckpointSpec{.gather = true};
  if (node->isScalar() && !node->quoted && node->text == "none") return std::nullopt;
  if (node->isMap()) return readCheckpointMap(*node, train, report);
  reportType("none, or a map such as {every_steps: 1000}", "checkpoint", *node, report);
  return CheckpointSpec{};
}

EarlyStoppingSpec readEarlyStopping(const YamlNode& node, const TrainSpec& train, Report& report) {
  const MapReader reader(node, schema::kEarlyStopping, "early_stopping", report);
  EarlyStoppingSpec stopping;
  reader.text("metric", stopping.metric);
  reader.whole("patience", stopping.patience);
  reader.number("min_delta", stopping.min_delta);
  const YamlNode* metric = reader.find("metric");
  checkEvaluated(train, stopping.metric, "early_stopping",
                 metric != nullptr ? metric->where() : node.key_place, report);
  if (!train.checkpoint)
    report.error(node.key_place,
                 "'early_stopping' saves the job where it ends, and 'checkpoint: none' keeps "
                 "nothing: leave one of them out");
  return stopping;
}

bool areImages(const std::vector<int64_t>& input_shape) {
  const size_t sizes = input_shape.size();
  if (sizes != 3) return sizes == 2;
  return input_shape[2] == 1 || input_shape[2] == 3 || input_shape[2] == 4;
}

SummariesSpec readSummaries(const YamlNode& node, const std::vector<int64_t>& input_shape,
                            Report& report) {
  const MapReader reader(node, schema::kSummaries, "summaries", report);
  SummariesSpec summaries;
  if (reader.find("every_steps") != nullptr) summaries.every_seconds = 0;
  reader.number("every_seconds", summaries.every_seconds);
  reader.whole("every_steps", summaries.every_steps);
  reader.boolean("histograms", summaries.histograms);
  reader.boolean("graph", summaries.graph);
  reader.whole("images", summaries.images);
  if (summaries.images > 0 && !areImages(input_shape))
    report.error(
        node.find("images")->where(),
        fmt::format("'images' needs a model.input.shape of [height, width], with 1, 3 or 4 "
                    "channels as a third size, and it is [{}]",
                    fmt::join(input_shape, ", ")));
  reader.whole("timeline_step", summaries.timeline_step);
  return summaries;
}

// Images become what the model reads. Other mistakes come first: they may be why it is no image.
void setImageSize(const model::ModelSpec& model, DatasetSpec& dataset, Report& report) {
  if (dataset.format != DatasetSpec::Format::kImages || !report.empty()) return;
  if (dataset.image_folder.setSize(model.input_shape)) return;
  report.error(report.placeOf(model.shape_mark),
               fmt::format("format images needs a model.input.shape of [height, width], with 1 or "
                           "3 channels as a third size, and it is [{}]",
                           fmt::join(model.input_shape, ", ")));
}

// Numbers that name rows of a table stay whole from the file on: as float32, 16777217 would be the
// row of 16777216. A features_as in the file stays.
void readWholeNumbers(DatasetSpec& dataset) {
  dataset.csv.whole_features = dataset.format == DatasetSpec::Format::kCsv;
  if (!dataset.npy.features_as) dataset.npy.features_as = FeaturesAs::kIndices;
}

}  // namespace

TrainSpec readTrain(const YamlNode& node, const TaskCounts& counts, Report& report) {
  const MapReader reader(node, schema::kTrain, node.key, report);
  TrainSpec train;
  if (const YamlNode* model = reader.find("model")) train.model = model::readModel(*model, report);
  train.data = readData(reader.find("data"), report);
  if (model::looksUpFeatures(train.model)) {
    readWholeNumbers(train.data.train);
    if (train.data.eval) readWholeNumbers(*train.data.eval);
  }
  train.model.input_dtype = train.data.train.featuresType();
  train.model.labels_dtype = train.data.train.labelsType();
  train.model.categories = train.data.train.categories();
  train.model.features_are_categories = train.data.train.csv.no_features;
  setImageSize(train.model, train.data.train, report);
  if (train.data.eval) setImageSize(train.model, *train.data.eval, report);
  if (const YamlNode* optimizer = reader.find("optimizer"))
    train.optimizer = readOptimizer(*optimizer, report);
  if (const YamlNode* replication = reader.find("replication"))
    train.replication = readReplication(*replication, counts, report);
  if (const YamlNode* placement = reader.find("placement"))
    train.placement = readPlacement(*placement, counts, report);
  reader.whole("steps", train.steps);
  if (reader.whole("epochs", train.epochs) && reader.find("steps") != nullptr)
    report.error(reader.find("epochs")->place, "'steps' and 'epochs' exclude each other");
  const size_t sizes = train.model.input_shape.size();
  if (train.data.augment.any() && (sizes < 2 || sizes > 3))
    report.error(node.find("data")->find("augment")->key_place,
                 "'augment' is for images, [height, width] or [height, width, channels], and "
                 "model.input.shape has " +
                     std::to_string(sizes) + (sizes == 1 ? " size" : " sizes"));
  if (const YamlNode* eval = reader.find("eval")) {
    MapReader(*eval, schema::kEval, "eval", report).whole("every_steps", train.eval_every_steps);
    if (!train.data.eval)
      report.error(eval->key_place, "'eval' needs a dataset: add 'eval' to 'data'");
  }
  if (train.model.wantsEvaluation() && !train.data.eval && reader.find("summaries") == nullptr)
    report.warning(node.find("model")->find("metrics")->key_place,
                   "'metrics' are of evaluations, and there is nothing to evaluate: add 'eval' to "
                   "'data'");
  reader.choice("kernels", train.kernels);
  reader.choice("precision", train.precision);
  train.checkpoint = readCheckpoint(reader.find("checkpoint"), train, report);
  if (const YamlNode* stopping = reader.find("early_stopping"))
    train.early_stopping = readEarlyStopping(*stopping, train, report);
  if (const YamlNode* summaries = reader.find("summaries"))
    train.summaries = readSummaries(*summaries, train.model.input_shape, report);
  if (const YamlNode* lines = reader.find("report"))
    MapReader(*lines, schema::kReport, "report", report)
        .whole("every_steps", train.report_every_steps);
  return train;
}

}  // namespace dtf::cluster
