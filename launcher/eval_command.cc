// dtf-launch eval: how good the model of a checkpoint is, without the cluster that trains it.

#include <fmt/format.h>

#include "common/base/check.h"
#include "common/base/cores.h"
#include "common/base/error.h"
#include "common/base/json.h"
#include "common/base/print.h"
#include "common/base/text.h"
#include "common/data/left_out_log.h"
#include "common/data/open_dataset.h"
#include "common/model/metrics.h"
#include "common/runtime/cpu_device.h"
#include "common/runtime/cpu_kernels.h"
#include "common/train/class_report.h"
#include "common/train/evaluation.h"
#include "common/train/trained_split.h"
#include "common/yaml/error_at.h"
#include "launcher/commands.h"
#include "launcher/json_fields.h"
#include "launcher/output.h"
#include "launcher/trained_model.h"

namespace dtf::launcher {

namespace {

struct Evaluated {
  train::Evaluation evaluation;
  uint64_t left_out = 0;    // records that are no examples
  int64_t other_words = 0;  // fields that the lists lack
};

// As the chief evaluates, so that the numbers are the same to the last bit.
Evaluated evaluate(const cluster::TrainSpec& train, const train::SavedModel& saved,
                   bool reports_classes) {
  const cluster::DatasetSpec spec = evaluationSpec(train.data, saved);
  runtime::ComputePool pool(availableCores());
  runtime::KernelTable kernels;
  train::KernelChoices choices = savedChoices(train, saved);
  runtime::registerCpuKernels(kernels, {bestIsa(), &pool}, choices.rule());
  runtime::CpuDevice device;
  const auto dataset = data::openDataset(spec, train.data.seed, true);
  const std::string trained =
      train::trainedExamplesText(saved.eval_split, train::splitSettingOf(spec));
  if (!trained.empty()) log::warning("event=trained_evaluated reason=\"{}\"", trained);
  data::LeftOutLog(log::Level::kWarning).add(*dataset);
  for (const data::OtherWords& words : dataset->otherWords())
    log::warning("event=other_words reason=\"{}\"", data::otherWordsText(words));
  train::Evaluator evaluator(train.model, dataset, kernels, device, reports_classes);
  return {evaluator.run(saved.values()), dataset->leftOut().size(),
          data::countOf(dataset->otherWords())};
}

std::string evalText(const std::string& job, const train::SavedModel& saved,
                     const Evaluated& evaluated) {
  const train::Evaluation& evaluation = evaluated.evaluation;
  std::string text = fmt::format("{}: step {}: ", job, saved.step);
  if (evaluation.accuracy) text += fmt::format("accuracy {:.4f}, ", *evaluation.accuracy);
  return text +
         fmt::format("loss {:.4f}{} on {}{}\n  checkpoint  {}{}\n", evaluation.loss,
                     train::metricsText(evaluation, ", ", ' '),
                     amountText(static_cast<uint64_t>(evaluation.examples), "example"),
                     evaluated.left_out == 0
                         ? ""
                         : fmt::format(", {} left out", amountText(evaluated.left_out, "record")),
                     saved.checkpoint.string(),
                     saved.moving_averages ? ", its moving averages" : "");
}

void checkHasClasses(const cluster::TrainSpec& train) {
  if (train.model.hasTargets())
    throw yaml::ErrorAt(ErrorCode::kBadConfig, train.model.mark,
                        "--report counts classes, and this model learns numbers (targets): leave "
                        "--report out; eval prints the loss and the model's metrics, such as "
                        "mean_absolute_error and r2_score");
}

}  // namespace

int eval(const cluster::JobSpec& job, const Options& options) {
  const cluster::TrainSpec& train = trainOf(job);
  if (!train.data.eval)
    throw yaml::ErrorAt(ErrorCode::kBadConfig, train.data.train.mark,
                        "the job names no data to evaluate: add 'eval' beside 'train' in 'data'");
  if (options.report) checkHasClasses(train);
  const train::SavedModel saved = openTrainedModel(job, options);
  const Evaluated evaluated = evaluate(train, saved, options.report);
  const train::Evaluation& evaluation = evaluated.evaluation;
  if (!options.json) {
    print(
        evalText(job.job, saved, evaluated) +
        (evaluation.classes ? train::classReportText(*evaluation.classes, saved.class_names) : ""));
    return 0;
  }
  Json event = {{"job", job.job},
                {"checkpoint", saved.checkpoint.string()},
                {"step", saved.step},
                {"moving_averages", saved.moving_averages},
                {"examples", evaluation.examples},
                {"left_out", evaluated.left_out},
                {"other_words", evaluated.other_words},
                {"loss", evaluation.loss},
                {"accuracy", orNull(evaluation.accuracy)}};
  if (evaluation.classes)
    event["report"] = train::classReportJson(*evaluation.classes, saved.class_names);
  for (const auto& [key, value] : event.members()) DTF_CHECK_MSG(model::isEvaluationKey(key), key);
  for (const train::MetricValue& metric : evaluation.metrics)
    event[metric.name] = orNull(metric.value);
  printEvent("eval", event);
  return 0;
}

}  // namespace dtf::launcher
