// dtf-launch predict: what the model of a checkpoint says of examples.

#include <fmt/format.h>
#include <unistd.h>

#include <memory>
#include <optional>
#include <vector>

#include "common/base/check.h"
#include "common/base/cores.h"
#include "common/base/error.h"
#include "common/base/file.h"
#include "common/base/print.h"
#include "common/base/text.h"
#include "common/data/eval_split.h"
#include "common/data/image_folder.h"
#include "common/data/label_check.h"
#include "common/data/open_dataset.h"
#include "common/runtime/cpu_device.h"
#include "common/runtime/cpu_kernels.h"
#include "common/train/inference.h"
#include "common/train/model_data.h"
#include "common/yaml/error_at.h"
#include "launcher/commands.h"
#include "launcher/output.h"
#include "launcher/predictions.h"
#include "launcher/trained_model.h"

namespace dtf::launcher {

namespace {

// Records to ask the model of, one after another.
// Owns: what holds them.
struct Examples {
  std::shared_ptr<const data::Dataset> dataset;   // of the job's own
  std::optional<data::UnlabelledExamples> input;  // of --input
  std::vector<std::filesystem::path> files;       // of images: of each record
  std::vector<std::string> truths = {};           // as PredictionNames'

  const data::Part& features() const { return dataset ? dataset->features() : input->features; }
  std::span<const data::Part> categories() const {
    return dataset ? dataset->categories() : std::span<const data::Part>(input->categories);
  }
  std::span<const data::BadRecord> unread() const {
    return dataset ? std::span<const data::BadRecord>(dataset->leftOut()) : input->unread;
  }
  // As Inference takes them.
  std::vector<std::span<const std::byte>> parts() const {
    std::vector<std::span<const std::byte>> parts = {std::as_bytes(features().bytes())};
    for (const data::Part& part : categories()) parts.push_back(std::as_bytes(part.bytes()));
    return parts;
  }
};

// That they are what the model reads.
void checkExamples(const cluster::TrainSpec& train, const Examples& examples) {
  train::checkFeatures(train.model, examples.features().spec(), examples.features().source(),
                       "predict from examples of the shape that the model is trained on");
  train::checkCategories(train.model, examples.categories(), examples.features().source());
  train::checkIndices(train.model, examples.features(), examples.categories());
}

// The labels as a table has them: words, or numbers.
std::vector<std::string> truthsOf(const data::Part& labels, const train::SavedModel& saved) {
  std::vector<std::string> truths;
  if (!data::areClasses(labels.spec())) {
    for (const float target : labels.as<float>()) truths.push_back(fmt::format("{}", target));
    return truths;
  }
  for (const int64_t label : data::classLabels(labels)) {
    const auto index = static_cast<size_t>(label);
    truths.push_back(index < saved.class_names.size() ? saved.class_names[index]
                                                      : std::to_string(label));
  }
  return truths;
}

// With the files that hold them, where these are images.
Examples openEvaluation(const cluster::TrainSpec& train, const train::SavedModel& saved) {
  const cluster::DatasetSpec spec = evaluationSpec(train.data, saved);
  if (spec.format != cluster::DatasetSpec::Format::kImages)
    return {data::openDataset(spec, train.data.seed, true), std::nullopt, {}};
  data::ImageTable table = data::readImageFolder(spec.image_folder);
  if (spec.split) table = data::evaluatedImages(table, spec.split->fraction);
  return {std::make_shared<const data::Dataset>(std::move(table.dataset)), std::nullopt,
          std::move(table.files)};
}

Examples evaluationData(const cluster::TrainSpec& train, const train::SavedModel& saved) {
  if (!train.data.eval)
    throw yaml::ErrorAt(ErrorCode::kBadConfig, train.data.train.mark,
                        "the job names no data to evaluate: name a file with --input, or add "
                        "'eval' beside 'train' in 'data'");
  Examples examples = openEvaluation(train, saved);
  checkExamples(train, examples);
  examples.truths = truthsOf(examples.dataset->labels(), saved);
  return examples;
}

Examples readInput(const cluster::TrainSpec& train, const train::SavedModel& saved,
                   const std::filesystem::path& file) {
  data::UnlabelledExamples input =
      data::readFeatures(file, train.data.train, train.model.input_shape, saved.signature);
  std::vector<std::filesystem::path> files = std::move(input.files);
  std::vector<std::string> truths = std::move(input.truths);
  Examples examples{nullptr, std::move(input), std::move(files), std::move(truths)};
  checkExamples(train, examples);
  return examples;
}

std::vector<float> outputsOf(train::Inference& inference, const Examples& examples) {
  std::vector<float> all;
  inference.run(examples.parts(), [&all](int64_t, std::span<const float> outputs) {
    all.insert(all.end(), outputs.begin(), outputs.end());
  });
  DTF_CHECK(!all.empty());
  return all;
}

// Each has its line; who reads thousands of these is to know that some hold no prediction.
void warnOfUnread(const Examples& examples) {
  const std::span<const data::BadRecord> unread = examples.unread();
  if (unread.empty()) return;
  const auto good = static_cast<size_t>(examples.features().count());
  printBounded(STDERR_FILENO,
               fmt::format("dtf-launch: warning: {} of {} records can't be read, and their lines "
                           "say why: {}\n",
                           unread.size(), good + unread.size(), printable(unread[0].reason)));
}

void say(const cluster::JobSpec& job, const Options& options, const train::SavedModel& saved,
         uint64_t examples) {
  if (options.json)
    printEvent("predict", {{"job", job.job},
                           {"checkpoint", saved.checkpoint.string()},
                           {"step", saved.step},
                           {"moving_averages", saved.moving_averages},
                           {"examples", examples},
                           {"output", options.output->string()}});
  else
    print(fmt::format("{}: step {}: {} predictions in {}\n", job.job, saved.step, examples,
                      options.output->string()));
}

}  // namespace

int predict(const cluster::JobSpec& job, const Options& options) {
  const cluster::TrainSpec& train = trainOf(job);
  const PredictionFormat format = predictionFormat(options.output, options.json);
  const train::SavedModel saved = openTrainedModel(job, options);
  const Examples examples =
      options.input ? readInput(train, saved, *options.input) : evaluationData(train, saved);
  runtime::ComputePool pool(availableCores());
  runtime::KernelTable kernels;
  train::KernelChoices choices = savedChoices(train, saved);
  runtime::registerCpuKernels(kernels, {bestIsa(), &pool}, choices.rule());
  runtime::CpuDevice device;
  train::Inference inference(train.model, kernels, device);
  inference.bindValues(saved.values());
  const std::vector<float> outputs = outputsOf(inference, examples);
  const std::string text =
      encodePredictions(format, train.model, outputs, inference.units(),
                        {examples.files, saved.class_names, examples.truths, examples.unread()});
  warnOfUnread(examples);
  if (!options.output) {
    print(text);
    return 0;
  }
  atomicReplace(*options.output, text);
  say(job, options, saved, outputs.size() / static_cast<size_t>(inference.units()));
  return 0;
}

}  // namespace dtf::launcher
