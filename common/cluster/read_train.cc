#include "common/cluster/read_train.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "common/base/check.h"
#include "common/cluster/read_replication.h"
#include "common/cluster/schema.h"
#include "common/graph/device_name.h"
#include "common/model/metrics.h"
#include "common/model/read_model.h"
#include "common/yaml/keys.h"
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

// Returns the task that "/job:ps/task:N" or, where workers host shards, "/job:worker/task:N" names,
// with or without "/cpu:0"; nullopt for another text.
std::optional<TaskId> hostOf(std::string_view device, const TaskCounts& counts) {
  const std::optional<TaskId> named = graph::variableTask(device);
  if (!named || (named->job == JobKind::kWorker && !counts.workersHost())) return std::nullopt;
  // Without ps, the ps of a number is the worker that hosts the shard of that number.
  const bool is_ps = named->job == JobKind::kPs && counts.hosts.ps > 0;
  return TaskId{is_ps ? JobKind::kPs : JobKind::kWorker, named->index};
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
    const ShardHosts& hosts = counts.hosts;
    const std::optional<TaskId> task = hostOf(*device, counts);
    const std::optional<uint32_t> shard = task ? hosts.shardOf(*task) : std::nullopt;
    const bool all_workers = hosts.ps == 0 && counts.workersHost();
    if (!task) {
      report.error(pin.where(),
                   fmt::format("a variable lives on a device like /job:{}/task:0, got {}",
                               all_workers ? "worker" : "ps", inQuotes(*device)));
    } else if (!shard && hosts.size() > 0) {
      const bool is_ps = task->job == JobKind::kPs;
      report.error(pin.where(), fmt::format("there is no {}: the cluster has {} {}",
                                            inQuotes(*device), is_ps ? hosts.ps : hosts.workers,
                                            is_ps || counts.one_process ? "ps" : "workers"));
    } else {
      // A shard's identity, whichever task hosts it.
      placement.pins[pin.key] = TaskId{JobKind::kPs, shard.value_or(task->index)}.device();
      placement.pin_marks[pin.key] = report.markOf(pin.key_place);
    }
  }
}

// Reads the weights of the hosts, by shard. They imply `even` without a strategy.
void readShares(const MapReader& reader, const TaskCounts& counts, PlacementSpec& placement) {
  const YamlNode* const node = reader.find("shares");
  if (node == nullptr) return;
  Report& report = reader.report();
  std::vector<double>& shares = placement.shares;
  constexpr yaml::Key kShare = yaml::number("shares", yaml::kPositive, "");
  for (const YamlNode& share : reader.list("shares"))
    if (const std::optional<double> weight = yaml::readNumber(share, kShare, report))
      shares.push_back(*weight);
  using Strategy = PlacementSpec::Strategy;
  if (reader.find("strategy") == nullptr) placement.strategy = Strategy::kEven;
  if (placement.strategy != Strategy::kEven && placement.strategy != Strategy::kHybrid)
    report.error(node->key_place,
                 "'shares' has a meaning only with 'strategy: even' or 'strategy: hybrid'");
  const uint32_t hosts = counts.one_process ? 0 : counts.hosts.size();  // one process: one shard
  if (hosts > 0 && shares.size() == hosts) std::swap(shares[0], shares[counts.hosts.leader]);
  if (!node->isSequence() || hosts == 0 || node->children.size() == hosts) return;
  report.error(node->where(), fmt::format("'shares' needs a number for each of the {} {}, got {}",
                                          hosts, counts.hosts.noun(), node->children.size()));
}

// Reads what `auto` may choose.
void readAmong(const MapReader& reader, PlacementSpec& placement) {
  const YamlNode* const node = reader.find("among");
  if (node == nullptr) return;
  constexpr yaml::Key kAmong = yaml::choice("among", "ps|hybrid|workers", "", "");
  for (const YamlNode& name : reader.list("among"))
    if (yaml::readChoice(name, kAmong, reader.report())) placement.among.push_back(name.text);
  if (placement.strategy != PlacementSpec::Strategy::kAuto)
    reader.report().error(node->key_place, "'among' has a meaning only with 'strategy: auto'");
}

// A word is short for {strategy: WORD}.
YamlNode asMap(const YamlNode& placement) {
  if (!placement.isScalar()) return placement;
  YamlNode map = placement;
  map.kind = YamlNode::Kind::kMap;
  map.children = {placement};
  map.children[0].key = "strategy";
  return map;
}

PlacementSpec readPlacement(const YamlNode& given, const TaskCounts& counts, Report& report) {
  PlacementSpec placement;
  placement.strategy_mark = report.markOf(given.key_place);
  const YamlNode node = asMap(given);
  const MapReader reader(node, schema::kPlacement, node.key, report);
  if (reader.choice("strategy", placement.strategy))
    placement.strategy_mark = report.markOf(reader.find("strategy")->where());
  if (placement.strategy == PlacementSpec::Strategy::kHybrid) {
    if (counts.hosts.ps > 0) placement.sparse_shards = counts.hosts.ps;
    if (counts.hosts.ps == 0 && counts.workersHost())
      report.error(reader.find("strategy")->where(),
                   "'strategy: hybrid' needs 'ps' in the cluster, which host the sparse "
                   "variables: add ps, or write strategy: even");
  }
  readShares(reader, counts, placement);
  readAmong(reader, placement);
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

// Returns the names of the figures of an evaluation: the loss and the metrics.
std::vector<std::string> figuresOf(const model::ModelSpec& model) {
  std::vector<std::string> names = {"loss"};
  if (model.accuracy) names.emplace_back("accuracy");
  for (const model::MetricSpec& metric : model.metrics) names.push_back(model::nameOf(metric));
  return names;
}

// Checks that the job is evaluated while it trains, with `metric`, which `key` needs.
void checkEvaluated(const TrainSpec& train, const std::string& metric, const std::string& key,
                    const Place& place, Report& report) {
  const std::vector<std::string> figures = figuresOf(train.model);
  const std::vector<model::ModelSpec::Scalar>& scalars = train.model.scalars;
  if (std::ranges::find(scalars, metric, &model::ModelSpec::Scalar::tensor) != scalars.end())
    report.error(place, fmt::format("{} is one of model.scalars, of which dtf can't tell whether "
                                    "more is better: name one of {}",
                                    inQuotes(metric), fmt::join(figures, ", ")));
  else if (std::find(figures.begin(), figures.end(), metric) == figures.end())
    report.error(place, fmt::format("the evaluations have no {} (they have {}): add it to "
                                    "model.metrics, or name one of these",
                                    inQuotes(metric), fmt::join(figures, ", ")));
  if (!train.data.eval || train.eval_every_steps == 0)
    report.error(place, inQuotes(key) +
                            " needs evaluations while the job trains: give 'data' an 'eval' or "
                            "'eval_split', and set eval.every_steps");
}

// every_steps alone switches the default of every_seconds off.
CheckpointSpec readCheckpointMap(const YamlNode& node, const TrainSpec& train, Report& report) {
  const MapReader reader(node, schema::kCheckpoint, "checkpoint", report);
  CheckpointSpec checkpoint;
  if (reader.find("every_steps") != nullptr) checkpoint.every_seconds = 0;
  // Only the default begins earlier: a named interval is a decision, which is obeyed.
  if (reader.number("every_seconds", checkpoint.every_seconds))
    checkpoint.first_seconds = checkpoint.every_seconds;
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

// Without the key the chief saves at the default interval and gathers the files of all ps: the ps
// may not see its run directory.
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
  if (reader.whole("patience", stopping.patience))
    stopping.mark = report.markOf(reader.find("patience")->where());
  reader.number("min_delta", stopping.min_delta);
  const YamlNode* metric = reader.find("metric");
  checkEvaluated(train, stopping.metric, "early_stopping",
                 metric != nullptr ? metric->where() : node.key_place, report);
  if (!train.checkpoint)
    report.error(node.key_place,
                 "'early_stopping' saves a checkpoint at its end, and 'checkpoint: none' forbids "
                 "it: leave one of them out");
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
                    "channels as a third size, got [{}]",
                    fmt::join(input_shape, ", ")));
  reader.whole("timeline_step", summaries.timeline_step);
  return summaries;
}

// Sets the size of examples that only the model has; of images unless there are other mistakes.
void setImageSize(const model::ModelSpec& model, DatasetSpec& dataset, Report& report) {
  dataset.libsvm.shape = model.input_shape;
  if (dataset.format != DatasetSpec::Format::kImages || !report.empty()) return;
  if (dataset.image_folder.setSize(model.input_shape)) return;
  report.error(report.placeOf(model.shape_mark),
               fmt::format("format images needs a model.input.shape of [height, width], with 1 or "
                           "3 channels as a third size, got [{}]",
                           fmt::join(model.input_shape, ", ")));
}

// Makes features that are rows of an embedding whole numbers from the file on: as float32, 16777217
// would become 16777216. Keeps a features_as of the file.
void readWholeNumbers(DatasetSpec& dataset) {
  dataset.csv.whole_features = dataset.format == DatasetSpec::Format::kCsv;
  if (!dataset.npy.features_as) dataset.npy.features_as = FeaturesAs::kIndices;
}

// Reads how the tasks exchange gradients, and where the parameters lie. The variables of a sync job
// are cut by bytes unless the file says otherwise, as the fullest host sets the pace of a step.
void readExchange(const MapReader& reader, const TaskCounts& counts, TrainSpec& train) {
  const YamlNode* const replication = reader.find("replication");
  train.replication = replication != nullptr
                          ? readReplication(*replication, counts, reader.report())
                          : defaultReplication(counts);
  const YamlNode* const placement = reader.find("placement");
  TaskCounts led = counts;
  led.hosts.leader = train.replication.leader;
  if (placement != nullptr) train.placement = readPlacement(*placement, led, reader.report());
  const bool chooses =
      placement != nullptr && (placement->find("strategy") != nullptr ||
                               placement->find("partition") != nullptr || placement->isScalar());
  if (train.replication.mode == ReplicationSpec::Mode::kSync && !chooses)
    train.placement.strategy = PlacementSpec::Strategy::kEven;
}

// A model wants an evaluation for its `metrics`, or for `scalars` alone.
void warnOfNoEvaluation(const YamlNode& model, Report& report) {
  const YamlNode* const metrics = model.find("metrics");
  const bool has_metrics = metrics != nullptr && !metrics->children.empty();
  const YamlNode* const wanted = has_metrics ? metrics : model.find("scalars");
  DTF_CHECK(wanted != nullptr);
  report.warning(wanted->key_place,
                 fmt::format("'{}' are computed on data.eval, and there is none: add 'eval' to "
                             "'data'",
                             wanted->key));
}

}  // namespace

bool isHybrid(const YamlNode& train) {
  const YamlNode* const placement = train.find("placement");
  const bool is_word = placement != nullptr && placement->isScalar();
  const YamlNode* const strategy =
      placement == nullptr || is_word ? placement : placement->find("strategy");
  return strategy != nullptr && strategy->isScalar() && strategy->text == "hybrid";
}

TrainSpec readTrain(const YamlNode& node, const TaskCounts& counts, Report& report) {
  const MapReader reader(node, schema::kTrain, node.key, report);
  TrainSpec train;
  if (const YamlNode* model = reader.find("model")) train.model = model::readModel(*model, report);
  train.data = readData(reader.find("data"), report);
  if (model::looksUpFeatures(train.model)) {
    if (const std::vector<NumericColumn>& numeric = train.data.train.csv.numeric; !numeric.empty())
      report.error(report.placeOf(numeric[0].mark),
                   "the model looks its features up in an embedding, so they are whole numbers: "
                   "'numeric_columns' prepares others");
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
  readExchange(reader, counts, train);
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
    warnOfNoEvaluation(*node.find("model"), report);
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
