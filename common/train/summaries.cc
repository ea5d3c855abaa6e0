#include "common/train/summaries.h"

#include <algorithm>

#include "common/base/check.h"
#include "common/base/failpoint.h"
#include "common/base/log.h"
#include "common/base/text.h"
#include "common/data/read_signature.h"
#include "common/model/metrics.h"
#include "common/optimizer/learning_rate.h"
#include "common/summary/graph_def.h"
#include "common/train/batch_images.h"
#include "common/train/class_report.h"

namespace dtf::train {

namespace {

void addMetrics(const Evaluation& evaluation, const std::string& prefix, summary::StepSummary& to) {
  if (evaluation.accuracy) to.scalars.push_back({prefix + "accuracy", *evaluation.accuracy});
  for (const MetricValue& metric : evaluation.metrics)
    if (metric.value) to.scalars.push_back({prefix + metric.name, *metric.value});
}

void addAverages(const std::string& prefix, const ClassScores& scores, summary::StepSummary& to) {
  to.scalars.push_back({prefix + "precision", scores.precision});
  to.scalars.push_back({prefix + "recall", scores.recall});
  to.scalars.push_back({prefix + "f1", scores.f1});
}

// In Markdown, lines of four spaces keep their columns.
std::string preformatted(const std::string& text) {
  std::string lines;
  for (const std::string& line : split(text, '\n')) lines += "    " + line + "\n";
  return lines;
}

}  // namespace

Summaries::Summaries(const cluster::TrainSpec& train, const TrainingLoop& loop,
                     FileSystem& file_system, const std::filesystem::path& folder,
                     const Clock& clock)
    : spec_(*train.summaries),
      has_metrics_(train.model.wantsEvaluation()),
      class_names_(countsClasses(train) ? data::classWords(data::readSignature(train.data.train))
                                        : ClassNames()),
      declaration_(loop.declaration()),
      examples_per_step_(loop.examplesPerStep()),
      clock_(clock),
      measured_at_(clock.now()),
      writer_(file_system, folder) {
  DTF_CHECK(examples_per_step_ > 0);
  if (!spec_.graph) return;
  writer_.addGraph(summary::encodeGraphDef(loop.model().graph, [&loop](graph::NodeId node) {
    return loop.placement().device(node).str();
  }));
}

summary::EventWriterStatus Summaries::finish() {
  if (due_) submit();
  writer_.addSession(step_, summary::SessionStatus::kStop);
  return writer_.finish();
}

// A summary by steps is due at each multiple, or at the first answer beyond it, as an async worker
// doesn't see every step.
bool Summaries::isDue(uint64_t global_step) {
  const uint64_t every = spec_.every_steps;
  if (every > 0 && global_step / every != measured_step_ / every) return true;
  return spec_.every_seconds > 0 && toSeconds(clock_.now() - measured_at_) >= spec_.every_seconds;
}

void Summaries::addScalars(const replication::StepState& state) {
  std::vector<summary::Scalar>& scalars = due_->scalars;
  scalars.push_back({"loss", state.loss});
  scalars.push_back(
      {"learning_rate", optimizer::learningRate(declaration_.optimizer, state.global_step)});
  const double seconds = toSeconds(clock_.now() - measured_at_);
  if (seconds <= 0) return;
  const double rate = static_cast<double>(state.global_step - measured_step_) / seconds;
  scalars.push_back({"global_step/sec", rate});
  scalars.push_back({"examples/sec", rate * examples_per_step_});
  for (const summary::Scalar& scalar : scalars)
    DTF_CHECK_MSG(model::isEvaluationKey(scalar.tag), scalar.tag);
}

// TensorBoard drops earlier events from the session's step on, as these steps are trained again. A
// job that resumes from step N trains N + 1 next, so the events of N stay.
void Summaries::startSession() {
  writer_.addSession(step_ > 0 ? step_ + 1 : 0, summary::SessionStatus::kStart);
}

void Summaries::onParameters(const replication::StepState& state, ParameterBinding& binding,
                             bool first) {
  if (due_) submit();  // no gradient came for it
  step_ = state.global_step;
  if (first) startSession();
  const bool resumed = first && step_ > 0;  // an earlier process measured this step
  const bool last = !first && state.done && state.global_step != measured_step_;
  if (resumed) measured_step_ = step_;
  if (resumed || (!first && !last && !isDue(state.global_step))) return;
  due_.emplace();
  if (!first) addScalars(state);
  if (spec_.histograms) {
    const std::vector<arena::VariableInfo>& variables = declaration_.layout.variables;
    binding.bringWhole();
    for (uint32_t i = 0; i < binding.variables(); ++i) {
      const auto elements = static_cast<size_t>(variables[i].shape.elements());
      due_->histograms.push_back(
          {variables[i].name, {binding.value(i), binding.value(i) + elements}});
    }
    binding.gatherAgain();
  }
  measured_step_ = state.global_step;
  measured_at_ = clock_.now();
  if (state.done || !needsBatch()) submit();
}

void Summaries::onGradients(ParameterBinding& binding, const ComputedBatch& batch) {
  if (!due_) return;
  if (spec_.histograms) addGradients(binding);
  // The first parameters have no scalars: nothing has been trained.
  if (has_metrics_ && !due_->scalars.empty()) addMetrics(batch.measure(), "", *due_);
  if (spec_.images > 0) addFirstImages(batch.examples);
  submit();
}

void Summaries::addFirstImages(const data::Batch& batch) {
  const uint64_t wanted = std::min(spec_.images, static_cast<uint64_t>(batch.count));
  const uint64_t left_out = addImages(batch.parts.at(0), wanted, *due_);
  if (left_out == 0 || images_left_out_) return;
  images_left_out_ = true;
  log::warning("event=images_left_out images={} shown={} reason=\"a summary holds {} of images\"",
               left_out, due_->images.size(), bytesText(kSummaryImagesBytesMax));
}

void Summaries::addGradients(ParameterBinding& binding) {
  const std::vector<arena::VariableInfo>& variables = declaration_.layout.variables;
  for (uint32_t i = 0; i < binding.variables(); ++i) {
    if (variables[i].momentum) continue;  // it has no gradient
    const std::span<const float> gradient = binding.gradientValues(i);
    due_->histograms.push_back(
        {variables[i].name + "/gradient", {gradient.begin(), gradient.end()}});
  }
}

void Summaries::onEvaluation(uint64_t global_step, const Evaluation& evaluation) {
  summary::StepSummary summary;
  summary.scalars.push_back({"eval/loss", evaluation.loss});
  addMetrics(evaluation, "eval/", summary);
  if (evaluation.classes) {
    const ClassReport report = evaluation.classes->report();
    addAverages("eval/macro/", report.macro, summary);
    addAverages("eval/weighted/", report.weighted, summary);
    summary.texts.push_back(
        {"eval/classes", preformatted(classReportText(*evaluation.classes, class_names_))});
  }
  writer_.add(global_step, std::move(summary));
}

void Summaries::onCheckpoint(uint64_t global_step) {
  writer_.addSession(global_step, summary::SessionStatus::kCheckpoint,
                     "checkpoints/step-" + std::to_string(global_step));
}

void Summaries::submit() {
  DTF_CHECK(due_);
  DTF_FAILPOINT("training.in_summary");
  if (!due_->scalars.empty() || !due_->histograms.empty() || !due_->images.empty())
    writer_.add(measured_step_, std::move(*due_));
  due_.reset();
}

}  // namespace dtf::train
