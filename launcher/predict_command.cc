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
#include "common/data/read_signature.h"
#include "common/runtime/cpu_device.h"
#include "common/runtime/cpu_kernels.h"
#include "common/train/inference.h"
#include "common/train/model_data.h"
#include "common/yaml/error_at.h"
#include "launcher/commands.h"
#include "launcher/output.h"
#include "launcher/predictions.h"
#include "launcher/standard_input.h"
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
  data::KeptColumns kept = {};

  const data::Part& features() const { return dataset ? dataset->features() : input->features; }
  std::span<const data::Part> categories() const {
    return dataset ? dataset->categories() : std::span<const data::Part>(input->categories);
  }
  std::span<const data::BadRecord> unread() const {
    return dataset ? std::span<const data::BadRecord>(dataset->leftOut()) : input->unread;
  }
  std::span<const data::OtherWords> otherWords() const {
    return dataset ? std::span<const data::OtherWords>(dataset->otherWords()) : input->other_words;
  }
  // As Inference takes them.
  std::vector<std::span<const std::byte>> parts() const {
    std::vector<std::span<const std::byte>> parts = {std::as_bytes(features().bytes())};
    for (const data::Part& part : categories()) parts.push_back(std::as_bytes(part.bytes()));
    return parts;
  }
};

// That they are what the model reads. `name`: of the data, for messages.
void checkExamples(const cluster::TrainSpec& train, const Examples& examples,
                   const std::string& name) {
  train::checkFeatures(train.model, examples.features().spec(), name,
                       "use examples of the shape that the model is trained on");
  train::checkCategories(train.model, examples.categories(), name);
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

// An error is about the input, which doesn't fit what the job's file says at its place.
[[noreturn]] void failInput(const std::string& reason, const yaml::ErrorAt& error) {
  const std::string place = error.mark().str();
  throw Error(error.code(), reason + (place.empty() ? "" : "\n  the job: " + place));
}

data::UnlabelledExamples readFeaturesOf(const std::filesystem::path& file,
                                        const cluster::TrainSpec& train,
                                        const train::SavedModel& saved,
                                        const std::vector<std::string>& keep) {
  try {
    return data::readFeatures(file, train.data.train, train.model.input_shape, saved.signature,
                              keep);
  } catch (const yaml::ErrorAt& error) {
    if (!error.reason().starts_with(file.string() + ": ")) throw;
    failInput(error.reason(), error);
  }
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
  checkExamples(train, examples, examples.features().source());
  examples.truths = truthsOf(examples.dataset->labels(), saved);
  return examples;
}

Examples readInput(const cluster::TrainSpec& train, const train::SavedModel& saved,
                   const std::filesystem::path& file, const std::vector<std::string>& keep) {
  data::UnlabelledExamples input = readFeaturesOf(file, train, saved, keep);
  if (!keep.empty() && input.kept.names.empty())
    throw Error(ErrorCode::kUsage,
                "--keep copies columns of a table in text, and " + file.string() + " is none");
  std::vector<std::filesystem::path> files = std::move(input.files);
  std::vector<std::string> truths = std::move(input.truths);
  data::KeptColumns kept = std::move(input.kept);
  Examples examples{nullptr, std::move(input), std::move(files), std::move(truths),
                    std::move(kept)};
  try {
    checkExamples(train, examples, "it");
  } catch (const yaml::ErrorAt& error) {
    failInput(file.string() + ": " + error.reason(), error);
  }
  return examples;
}

// The columns of the table that the model has learned; empty: they have no names.
std::vector<std::string> learnedColumns(const train::SavedModel& saved) {
  if (!saved.signature || !saved.signature->isTable() || !saved.signature->header) return {};
  return data::trainedColumns(*saved.signature).targets;
}

// The file to keep columns of, as with --input.
std::filesystem::path evaluatedTable(const cluster::TrainSpec& train) {
  const std::optional<cluster::DatasetSpec>& eval = train.data.eval;
  const bool is_table = eval && eval->format == cluster::DatasetSpec::Format::kCsv;
  if (is_table && !eval->split && eval->files.size() == 1) return eval->files[0];
  throw Error(ErrorCode::kUsage,
              fmt::format("--keep copies columns of one table, and the job's evaluation data are "
                          "{}: name a table with --input",
                          !eval         ? "missing"
                          : !is_table   ? "none"
                          : eval->split ? "a part of its training data"
                                        : "several tables"));
}

// The file of --input, or the one to keep columns of; nullopt: the job's evaluation data.
std::optional<std::filesystem::path> inputOf(const cluster::TrainSpec& train,
                                             const Options& options) {
  if (options.input) return isStandardInput(*options.input) ? wholeStandardInput() : options.input;
  return options.keep.empty() ? std::nullopt : std::optional(evaluatedTable(train));
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
  if (examples.input && examples.input->other_files > 0)
    printBounded(STDERR_FILENO,
                 fmt::format("dtf-launch: warning: {} without a picture's name have no line, the "
                             "first is {}\n",
                             amountText(static_cast<uint64_t>(examples.input->other_files), "file"),
                             printable(examples.input->other_file.string())));
  const std::span<const data::BadRecord> unread = examples.unread();
  if (unread.empty()) return;
  const auto good = static_cast<size_t>(examples.features().count());
  printBounded(STDERR_FILENO,
               fmt::format("dtf-launch: warning: {} of {} records have no prediction; their lines "
                           "give the reason: {}\n",
                           unread.size(), good + unread.size(), printable(unread[0].reason)));
}

// Their predictions look like any other.
void warnOfOtherWords(const Examples& examples) {
  for (const data::OtherWords& words : examples.otherWords())
    printBounded(STDERR_FILENO,
                 fmt::format("dtf-launch: warning: {}\n", data::otherWordsText(words)));
}

void say(const cluster::JobSpec& job, const Options& options, const train::SavedModel& saved,
         uint64_t examples, int64_t other_words) {
  if (options.json)
    printEvent("predict", {{"job", job.job},
                           {"checkpoint", saved.checkpoint.string()},
                           {"step", saved.step},
                           {"moving_averages", saved.moving_averages},
                           {"examples", examples},
                           {"other_words", other_words},
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
  const std::optional<std::filesystem::path> input = inputOf(train, options);
  const Examples examples =
      input ? readInput(train, saved, *input, options.keep) : evaluationData(train, saved);
  runtime::ComputePool pool(availableCores());
  runtime::KernelTable kernels;
  train::KernelChoices choices = savedChoices(train, saved);
  runtime::registerCpuKernels(kernels, {bestIsa(), &pool}, choices.rule());
  runtime::CpuDevice device;
  train::Inference inference(train.model, kernels, device);
  inference.bindValues(saved.values());
  const std::vector<std::string> targets = learnedColumns(saved);
  const PredictionNames names{examples.files,    saved.class_names, examples.truths,
                              examples.unread(), &examples.kept,    targets};
  checkKeptNames(format, train.model, examples.features().count(), inference.units(), names);
  const std::vector<float> outputs = outputsOf(inference, examples);
  const std::string text =
      encodePredictions(format, train.model, outputs, inference.units(), names);
  warnOfUnread(examples);
  warnOfOtherWords(examples);
  if (!options.output) {
    print(text);
    return 0;
  }
  atomicReplace(*options.output, text);
  say(job, options, saved, outputs.size() / static_cast<size_t>(inference.units()),
      data::countOf(examples.otherWords()));
  return 0;
}

}  // namespace dtf::launcher
