#include "common/train/job_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/base/saturating.h"
#include "common/base/text.h"
#include "common/cluster/schema.h"
#include "common/data/cifar_reader.h"
#include "common/data/csv_reader.h"
#include "common/data/data_files.h"
#include "common/data/dataset.h"
#include "common/data/digits.h"
#include "common/data/idx_reader.h"
#include "common/data/image_folder.h"
#include "common/data/npy_dataset.h"
#include "common/data/read_signature.h"
#include "common/data/synthetic.h"
#include "common/model/metrics.h"
#include "common/model/model_graph.h"
#include "common/model/model_memory.h"
#include "common/replication/replication_rules.h"
#include "common/shard/declaration.h"
#include "common/train/data_fit.h"
#include "common/train/device_check.h"
#include "common/train/epochs.h"
#include "common/train/initial_values.h"
#include "common/train/metric.h"
#include "common/train/model_data.h"
#include "common/train/patience_check.h"
#include "common/train/seen_data.h"
#include "common/yaml/error_at.h"

namespace dtf::train {

namespace {

using cluster::DatasetSpec;
using graph::PlacedVariable;
using yaml::Mark;

// Checks one job.
// Borrows: all arguments, for one call of run().
class JobChecker {
 public:
  JobChecker(const cluster::JobSpec& job, const Host& host, yaml::Report& report)
      : job_(job), train_(*job.train), host_(host), report_(report) {}

  std::optional<JobSize> run() {
    findOutput();
    checkData(train_.data.train, true);
    if (train_.data.eval && (report_.empty() || !train_.data.eval->split))  // a split once
      checkData(*train_.data.eval, false);
    // Unreadable data are already reported.
    if (train_.data.eval && report_.empty() && !is_elsewhere_)
      noting(train_.data.eval->mark,
             [this] { data::readAsTrained(*train_.data.eval, train_.data.train); });
    noting(train_.model.mark, [this] { checkModel(); });
    if (report_.empty()) warnOfPatience(job_, examples_, report_);
    if (output_)
      for (const std::string& unread : model::unreadInputsOf(train_.model))
        report_.warning(placeOf(train_.model.mark), "no layer reads " + unread + " of the data");
    return size_;
  }

 private:
  // Runs `check`, and reports its error at the error's own place, or else at `mark`.
  template <class Check>
  bool noting(const Mark& mark, const Check& check) {
    try {
      check();
      return true;
    } catch (const yaml::ErrorAt& error) {
      report_.error(placeOf(error.mark().file.empty() ? mark : error.mark()), error.reason(),
                    error.code());
    } catch (const Error& error) {
      report_.error(placeOf(mark), error.message(), error.code());
    }
    return false;
  }

  // A key left at its default has no place; the model's, which is always written, stands for it.
  yaml::Place placeOf(const Mark& mark) const {
    return report_.placeOf(mark.file.empty() ? train_.model.mark : mark);
  }

  // checkModel() reports mistakes in the model, after those in the data.
  void findOutput() {
    try {
      output_ = model::outputOf(train_.model);
    } catch (const Error&) {
      output_ = std::nullopt;
    }
  }

  using Seen = SeenData;

  void checkData(const DatasetSpec& dataset, bool to_train) {
    // Only the chief evaluates. Data to be copied from here must be here.
    const std::vector<cluster::TaskSpec>& workers = job_.cluster.worker;
    const uint64_t readers = to_train ? countHere(workers) : runsHere(workers.at(kChief.index));
    if (readers == 0 && !job_.launch.copy.data && isElsewhere(dataset)) return;
    const std::optional<Seen> seen = look(dataset);
    if (!seen) return;
    const std::string remedy = shapeRemedy(seen->columns, seen->features.shape, to_train);
    noting(seen->mark, [&] { checkFeatures(train_.model, seen->features, seen->name, remedy); });
    if (output_ && !data::areClasses(seen->labels))
      noting(seen->mark, [&] {
        data::checkTargetCount(seen->labels, seen->name, output_->units, output_->layer->name);
      });
    const uint64_t example_bytes =
        seen->features.bytes() + seen->labels.bytes() + dataset.categoryBytes();
    const uint64_t bytes =
        seen->count ? saturatingMultiply(static_cast<uint64_t>(*seen->count), example_bytes)
                    : seen->bytes.value();
    // Larger data are mapped, but a table is always collected in memory.
    const bool resident = !seen->count || bytes <= data::kResidentBytesMax;
    if (resident) data_bytes_ = saturatingAdd(data_bytes_, saturatingMultiply(bytes, readers));
    if (!to_train && readers > 0) countMetrics(*seen, bytes / std::max<uint64_t>(example_bytes, 1));
    if (!to_train || !seen->count) return;
    const Mark& batch_mark = train_.data.batch_size_mark;
    noting(batch_mark.file.empty() ? dataset.mark : batch_mark,
           [&] { checkBatches(train_, *seen->count, seen->name); });
    examples_ = *seen->count;
  }

  // Returns whether the data, which only other hosts read, are missing here; if so, warns.
  bool isElsewhere(const DatasetSpec& dataset) {
    const std::filesystem::path missing = data::missingPath(dataset);
    if (missing.empty()) return false;
    report_.warning(placeOf(dataset.mark), fmt::format("{} is not on this host, where no worker "
                                                       "reads it: the workers' hosts must have it",
                                                       missing.string()));
    return is_elsewhere_ = true;
  }

  // Counts the memory of a ranking, which needs all outputs of an evaluation at once.
  void countMetrics(const Seen& seen, uint64_t examples) {
    const std::vector<model::MetricSpec>& metrics = train_.model.metrics;
    if (!output_ ||
        std::find(metrics.begin(), metrics.end(), model::MetricKind::kAuc) == metrics.end())
      return;
    const int64_t ranked = rankedColumns(output_->units, !data::areClasses(seen.labels));
    metric_bytes_ = saturatingMultiply(examples, static_cast<uint64_t>(ranked) * kRankedBytes);
  }

  // Returns nullopt if a file can't be read, after reporting it.
  std::optional<Seen> look(const DatasetSpec& dataset) {
    switch (dataset.format) {
      case DatasetSpec::Format::kIdx:
        return lookAtIdx(dataset);
      case DatasetSpec::Format::kCifar10:
      case DatasetSpec::Format::kCifar100:
        return lookAtCifar(dataset);
      case DatasetSpec::Format::kDigits:
        noting(dataset.mark, [this] { checkClasses(data::kDigitsName, data::kDigitClasses); });
        return seenPixels(dataset.count, Shape{data::kDigitSide, data::kDigitSide, 1},
                          data::kDigitsName, dataset.mark);
      case DatasetSpec::Format::kSynthetic:
        return lookAtSynthetic(dataset);
      case DatasetSpec::Format::kCsv:
        return lookAtCsv(dataset);
      case DatasetSpec::Format::kLibsvm:
        return lookAtLibsvm(dataset);
      case DatasetSpec::Format::kNpy:
      case DatasetSpec::Format::kNpz:
        return lookAtNpy(dataset);
      case DatasetSpec::Format::kImages:
        return lookAtImages(dataset.image_folder);
    }
    DTF_CHECK_MSG(false, std::to_string(static_cast<int>(dataset.format)));
  }

  std::optional<Seen> lookAtIdx(const DatasetSpec& dataset) {
    std::optional<data::IdxImages> images;
    noting(dataset.images_mark, [&] { images = data::readIdxImagesHeader(dataset.images); });
    noting(dataset.labels_mark, [&] { checkLabels(dataset, images); });
    if (!images) return std::nullopt;
    return seenPixels(images->count, images->example_shape, dataset.images.string(),
                      dataset.images_mark);
  }

  std::optional<Seen> lookAtCifar(const DatasetSpec& dataset) {
    const data::CifarLabels labels = data::cifarLabels(dataset);
    int64_t count = 0;
    size_t read = 0;
    for (size_t i = 0; i < dataset.files.size(); ++i)
      read += noting(dataset.files_marks.at(i),
                     [&] { count += data::readCifarCount(dataset.files[i], labels); });
    const Mark& mark = dataset.files.empty() ? dataset.mark : dataset.files_marks.at(0);
    noting(mark, [&] { checkClasses(labels.dataset, labels.classesToLearn()); });
    if (read < std::max<size_t>(dataset.files.size(), 1)) return std::nullopt;
    return seenPixels(count, data::cifarImage(), dataset.files[0].string(), mark);
  }

  std::optional<Seen> lookAtSynthetic(const DatasetSpec& dataset) {
    Seen seen{dataset.count,
              std::nullopt,
              data::syntheticFeatures(dataset.problem),
              data::syntheticLabels(dataset.problem),
              data::kSyntheticName,
              dataset.mark};
    const int64_t classes = dataset.problem == cluster::Problem::kCentres ? dataset.classes : 2;
    if (data::areClasses(seen.labels))
      noting(dataset.mark, [&] { checkClasses(data::kSyntheticName, classes); });
    return seen;
  }

  std::optional<Seen> lookAtCsv(const DatasetSpec& dataset) {
    if (dataset.files.empty()) return std::nullopt;
    Seen seen;
    seen.name = dataset.files[0].string();
    seen.mark = dataset.files_marks.at(0);
    std::vector<yaml::ErrorAt> missing;
    const bool read = noting(seen.mark, [&] {
      missing = data::missingColumns(dataset.files, dataset.csv);
      if (!missing.empty()) return;
      const data::CsvHeader header = data::readCsvHeader(dataset.files, dataset.csv);
      seen.features = header.features;
      seen.labels = header.labels;
      seen.columns = featureColumns(header.trained, dataset.csv);
      // A number of 4 bytes has hardly less than 3 bytes of text, with its delimiter.
      seen.bytes = saturatingMultiply(data::bytesOfFiles(dataset), 4) / 3;
    });
    for (const yaml::ErrorAt& each : missing) noting(seen.mark, [&each] { throw each; });
    if (!read || !missing.empty()) return std::nullopt;
    const auto classes = static_cast<int64_t>(dataset.csv.class_names.size());
    if (classes > 0) noting(seen.mark, [&] { checkClasses("class_names", classes); });
    return seen;
  }

  std::optional<Seen> lookAtLibsvm(const DatasetSpec& dataset) {
    std::optional<Seen> seen;
    if (dataset.files.empty()) return seen;
    noting(dataset.files_marks.at(0), [&] { seen = seenLibsvm(dataset); });
    const auto classes = static_cast<int64_t>(dataset.csv.class_names.size());
    if (classes > 0) noting(dataset.mark, [&] { checkClasses("class_names", classes); });
    return seen;
  }

  std::optional<Seen> lookAtNpy(const DatasetSpec& dataset) {
    std::optional<Seen> seen;
    const cluster::DataFile& features = dataset.npy.features;
    noting(features.mark, [&] {
      const data::NpyParts parts = data::readNpyParts(dataset);
      seen = Seen{parts.count,  std::nullopt,           parts.features,
                  parts.labels, features.path.string(), features.mark};
    });
    return seen;
  }

  // Damaged files are found when they are read.
  std::optional<Seen> lookAtImages(const cluster::ImagesSpec& images) {
    if (images.channels == 0) return std::nullopt;  // reported: the model's input is no image
    std::optional<data::ImageList> list;
    noting(images.folder.mark, [&] { list = data::listImages(images); });
    if (!list) return std::nullopt;
    const std::string folder = images.folder.path.string();
    noting(images.folder.mark, [&] {
      checkClasses("the subfolders of " + folder, static_cast<int64_t>(list->class_names.size()));
    });
    return Seen{static_cast<int64_t>(list->files.size()),
                std::nullopt,
                data::imageFeatures(images),
                data::imageLabels(),
                folder,
                images.folder.mark};
  }

  void checkLabels(const DatasetSpec& dataset, const std::optional<data::IdxImages>& images) {
    const data::Part labels = data::readIdxLabels(dataset.labels);
    const std::string mismatch =
        images ? data::countMismatch(dataset.images, images->count, dataset.labels, labels.count())
               : "";
    if (!mismatch.empty()) throw Error(ErrorCode::kBadData, mismatch);
    if (output_) data::checkLabels(labels, output_->units, output_->layer->name);
  }

  void checkClasses(const std::string& name, int64_t classes) const {
    if (output_) checkClassCount(*output_, name, classes);
  }

  // Builds, places and declares the model as a worker does, and runs the check of the ps.
  void checkModel() {
    const model::ModelGraph model = trainingGraphOf(withLargestBatch(train_, examples_));
    cluster::PlacementSpec placement = placementOf(train_);
    const cluster::ClusterSpec& cluster = job_.cluster;
    removeUnknownPins(model, placement.pins);
    if (!checkModelDevices(model, cluster, report_)) return;
    const graph::Placement placed = placeModel(model.graph, placement, cluster, kChief.index);
    kept_ = model::keptTensors(model);
    countModel(placed, model::denseGradientElements(model));
    if (!fitsMemory()) return;
    const auto ranks = static_cast<uint32_t>(cluster.worker.size());
    shard::validateDeclaration(declarationOf(train_, layoutOf(model, placed), ranks),
                               shardsOf(cluster), ranks);
  }

  void removeUnknownPins(const model::ModelGraph& model, std::map<std::string, std::string>& pins) {
    std::vector<std::string_view> names;
    for (const model::ModelVariable& variable : model.variables)
      names.push_back(model.graph.node(variable.value.node).name);
    std::erase_if(pins, [&](const auto& pin) {
      if (std::find(names.begin(), names.end(), pin.first) != names.end()) return false;
      report_.error(placeOf(train_.placement.pin_marks.at(pin.first)),
                    fmt::format("the model has no variable {}{}", yaml::inQuotes(pin.first),
                                yaml::suggestion(pin.first, names)));
      return true;
    });
  }

  void countModel(const graph::Placement& placed, uint64_t gradients) {
    JobSize size;
    size.hosts = job_.cluster.shardHosts();
    size.ps_bytes.resize(size.hosts.size());
    for (const PlacedVariable& variable : placed.variables) {
      size.parameters += static_cast<uint64_t>(variable.shape.elements());
      if (variable.bytes() > largest_bytes_) {
        largest_bytes_ = variable.bytes();
        largest_layer_ = variable.name.substr(0, variable.name.find('/'));
      }
      for (const graph::VariablePart& part : variable.parts)
        size.ps_bytes.at(part.ps_task) += part.count * sizeof(float);
    }
    DTF_CHECK(size.parameters > 0);  // the builder refuses a model without variables
    uint64_t ps_bytes = 0;           // of the parameters on the ps of this host
    for (uint32_t ps = 0; ps < size.ps_bytes.size(); ++ps)
      if (runsHere(job_.cluster.host(ps))) ps_bytes = saturatingAdd(ps_bytes, size.ps_bytes[ps]);
    const PsCopies copies = psCopies(job_);
    size.kept_bytes = kept_.bytes;
    uint64_t here = 0;  // of the workers on this host
    for (const cluster::TaskSpec& worker : job_.cluster.worker) {
      // Towers share parameters and batch; each has gradients. Overlap needs a second set.
      const uint64_t shared = saturatingAdd(size.parameters, gradients);
      uint64_t held =
          saturatingAdd(saturatingMultiply(shared, job_.train->replication.overlap ? 2 : 1),
                        saturatingMultiply(gradients, cluster::devicesOf(worker).size() - 1));
      held = saturatingAdd(held, copiesForTransfer(job_.train->replication, shared));
      const uint64_t bytes = saturatingMultiply(held, sizeof(float));
      size.worker_bytes = std::max(size.worker_bytes, bytes);
      if (runsHere(worker)) here = saturatingAdd(here, bytes);
    }
    size.ps_copies = copies.all();
    size.metric_bytes = metric_bytes_;
    model_bytes_ = saturatingAdd(saturatingMultiply(ps_bytes, copies.all()), here);
    kept_bytes_ = saturatingMultiply(kept_.bytes, countHere(job_.cluster.worker));
    size.memory_bytes = saturatingAdd(saturatingAdd(model_bytes_, kept_bytes_),
                                      saturatingAdd(data_bytes_, metric_bytes_));
    size_ = std::move(size);
  }

  bool runsHere(const cluster::TaskSpec& task) const {
    return !host_.runs || host_.runs(task.address);
  }
  uint64_t countHere(const std::vector<cluster::TaskSpec>& tasks) const {
    return static_cast<uint64_t>(std::ranges::count_if(
        tasks, [this](const cluster::TaskSpec& task) { return runsHere(task); }));
  }

  bool keepsMost() const { return kept_bytes_ > std::max(model_bytes_, data_bytes_); }
  bool ranksMost() const {
    return metric_bytes_ > std::max({kept_bytes_, model_bytes_, data_bytes_});
  }
  // Returns a text on the largest use of memory.
  std::string largestText() const {
    if (ranksMost())
      return fmt::format("the metric '{}' keeps {} of each evaluation",
                         model::nameOf(model::MetricKind::kAuc), bytesText(metric_bytes_));
    if (keepsMost())
      return fmt::format("layer '{}' keeps {} of each batch for its gradients", kept_.largest_layer,
                         bytesText(kept_.largest_bytes));
    if (model_bytes_ >= data_bytes_)
      return fmt::format("layer '{}' has {} of parameters", largest_layer_,
                         bytesText(largest_bytes_));
    return fmt::format("the examples take {} of memory", bytesText(data_bytes_));
  }
  // Returns the layer that largestText() names, or that holds the named part; empty if none.
  std::string largestLayer() const {
    if (ranksMost()) return "";
    if (keepsMost()) return kept_.largest_layer.substr(0, kept_.largest_layer.find('/'));
    return model_bytes_ >= data_bytes_ ? largest_layer_ : "";
  }

  // Reports a lack of memory; returns false if even the total memory is too small.
  bool fitsMemory() {
    const uint64_t needed = size_->memory_bytes;
    const HostMemory& memory = host_.memory;
    const bool too_much = memory.total > 0 && needed > memory.total;
    if (!too_much && (memory.available == 0 || needed <= memory.available)) return true;
    const uint64_t ps = countHere(job_.cluster.ps), workers = countHere(job_.cluster.worker);
    const std::string text = fmt::format(
        "{}, and the {}{} workers here need at least {} together; this host has {}{}",
        largestText(), ps == 0 ? "" : fmt::format("{} ps and ", ps), workers, bytesText(needed),
        bytesText(too_much ? memory.total : memory.available), too_much ? "" : " available");
    const std::string layer = largestLayer();
    const Mark& data_mark = ranksMost() ? train_.data.eval->mark : train_.data.train.mark;
    const yaml::Place place = placeOf(layer.empty() ? data_mark : layerMark(layer));
    too_much ? report_.error(place, text) : report_.warning(place, text);
    return !too_much;
  }

  const Mark& layerMark(const std::string& name) const {
    const auto layer = std::ranges::find(train_.model.layers, name, &model::LayerSpec::name);
    DTF_CHECK(layer != train_.model.layers.end());
    return layer->mark;
  }

  const cluster::JobSpec& job_;
  const cluster::TrainSpec& train_;
  const Host& host_;
  yaml::Report& report_;
  std::optional<model::ModelOutput> output_;  // nullopt: the model can't be built
  bool is_elsewhere_ = false;                 // some data are only on other hosts
  int64_t examples_ = 0;                      // to train on; 0: unknown before they are read
  std::optional<JobSize> size_;
  std::string largest_layer_;
  uint64_t largest_bytes_ = 0;  // of one variable
  model::KeptTensors kept_;     // of one worker
  uint64_t kept_bytes_ = 0;     // of all workers on this host
  uint64_t model_bytes_ = 0;    // with all copies, on the tasks of this host
  uint64_t data_bytes_ = 0;     // on the workers of this host
  uint64_t metric_bytes_ = 0;   // on the chief, if it runs here
};

}  // namespace

std::optional<JobSize> checkJob(const cluster::JobSpec& job, const Host& host,
                                yaml::Report& report) {
  DTF_CHECK(!job.cluster.worker.empty());
  checkDevices(job, host, report);
  if (job.train) return JobChecker(job, host, report).run();
  report.error(report.placeOf(job.mark),
               "missing key 'train': a TRAIN.yaml, relative to this file, or its keys in place");
  return std::nullopt;
}

}  // namespace dtf::train
