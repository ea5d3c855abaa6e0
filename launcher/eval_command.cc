// dtf-launch eval: how good the model of a checkpoint is, without the cluster that trains it.

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "common/base/cores.h"
#include "common/base/error.h"
#include "common/base/print.h"
#include "common/base/text.h"
#include "common/data/open_dataset.h"
#include "common/runtime/cpu_device.h"
#include "common/runtime/cpu_kernels.h"
#include "common/train/evaluation.h"
#include "common/yaml/error_at.h"
#include "launcher/commands.h"
#include "launcher/json_fields.h"
#include "launcher/output.h"
#include "launcher/trained_model.h"

namespace dtf::launcher {

namespace {

// Whether the training data can still be asked for the order of their classes and columns.
bool areThere(const cluster::DatasetSpec& data) {
  std::error_code gone;
  const bool images = data.format == cluster::DatasetSpec::Format::kImages;
  if (images) return std::filesystem::is_directory(data.image_folder.folder.path, gone);
  return data.files.empty() || std::filesystem::exists(data.files[0], gone);
}

// As the chief evaluates, so that the numbers are the same to the last bit.
train::Evaluation evaluationOf(const cluster::TrainSpec& train, const train::SavedModel& saved) {
  if (areThere(train.data.train)) data::checkSameOrder(train.data.train, *train.data.eval);
  runtime::ComputePool pool(availableCores());
  runtime::KernelTable kernels;
  train::KernelChoices choices = savedChoices(train, saved);
  runtime::registerCpuKernels(kernels, {bestIsa(), &pool}, choices.rule());
  runtime::CpuDevice device;
  train::Evaluator evaluator(
      train.model, data::openDataset(*train.data.eval, train.data.seed, true), kernels, device);
  return evaluator.run(saved.values());
}

std::string evalText(const std::string& job, const train::SavedModel& saved,
                     const train::Evaluation& evaluation) {
  std::string text = fmt::format("{}: step {}: ", job, saved.step);
  if (evaluation.accuracy) text += fmt::format("accuracy {:.4f}, ", *evaluation.accuracy);
  return text + fmt::format("loss {:.4f}{} on {}\n  checkpoint  {}{}\n", evaluation.loss,
                            train::metricsText(evaluation, ", ", ' '),
                            amountText(static_cast<uint64_t>(evaluation.examples), "example"),
                            saved.checkpoint.string(),
                            saved.moving_averages ? ", its moving averages" : "");
}

}  // namespace

int eval(const cluster::JobSpec& job, const Options& options) {
  const cluster::TrainSpec& train = trainOf(job);
  if (!train.data.eval)
    throw yaml::ErrorAt(ErrorCode::kBadConfig, train.data.train.mark,
                        "the job names no data to evaluate: add 'eval' beside 'train' in 'data'");
  const train::SavedModel saved = openTrainedModel(job, options);
  checkClassNames(saved, *train.data.eval);
  const train::Evaluation evaluation = evaluationOf(train, saved);
  if (!options.json) {
    print(evalText(job.job, saved, evaluation));
    return 0;
  }
  nlohmann::ordered_json event = {{"job", job.job},
                                  {"checkpoint", saved.checkpoint.string()},
                                  {"step", saved.step},
                                  {"moving_averages", saved.moving_averages},
                                  {"examples", evaluation.examples},
                                  {"loss", evaluation.loss},
                                  {"accuracy", orNull(evaluation.accuracy)}};
  for (const train::MetricValue& metric : evaluation.metrics)
    event[metric.name] = orNull(metric.value);
  printEvent("eval", event);
  return 0;
}

}  // namespace dtf::launcher
