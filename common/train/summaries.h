#pragma once

// The chief's summaries, as TensorFlow's Supervisor writes them: periodic scalars and histograms,
// the graph once, and an event when the session starts, saves and stops.
//
//   loss, learning_rate, global_step/sec, examples/sec     scalars
//   accuracy, METRIC                                       scalars, if the model lists them: of the
//                                                          chief's next batch as training sees it
//   features/image/N                                       the first images of that batch, if
//                                                          requested: see batch_images.h
//   eval/loss, eval/accuracy, eval/METRIC                  scalars, at each evaluation
//   eval/macro/f1, eval/weighted/recall, ...               scalars: the averages over the classes
//   eval/classes                                           text: the report of class_report.h
//   <variable>, <variable>/gradient                        histograms: the values at one global
//                                                          step; the gradient of the chief's next
//                                                          batch, as it is pushed

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/cluster/spec.h"
#include "common/summary/event_writer.h"
#include "common/train/saved_signature.h"
#include "common/train/step_observer.h"
#include "common/train/training_loop.h"

namespace dtf::train {

// Owns: the event writer with its thread.
// Borrows: the declaration of `loop`, `clock`, `file_system`.
// Threads: onCheckpoint() on any, the rest on the training thread.
// Blocks: only finish() and the destructor, until all summaries are written. A due summary costs
// the training thread a copy of the variables and one of the gradients, and a forward pass if the
// model has metrics.
// Errors: none; finish() returns the counts of failed events.
class Summaries final : public StepObserver {
 public:
  Summaries(const cluster::TrainSpec& train, const TrainingLoop& loop, FileSystem& file_system,
            const std::filesystem::path& folder, const Clock& clock);
  void onParameters(const replication::StepState& state, ParameterBinding& binding,
                    bool first) override;
  void onGradients(ParameterBinding& binding, const ComputedBatch& batch) override;
  void onEvaluation(uint64_t global_step, const Evaluation& evaluation) override;
  void onCheckpoint(uint64_t global_step);

  // Ends the session and waits until all events are written. Must be the last call.
  summary::EventWriterStatus finish();

 private:
  void startSession();
  bool isDue(uint64_t global_step);
  bool needsBatch() const { return spec_.histograms || spec_.images > 0 || has_metrics_; }
  void addScalars(const replication::StepState& state);
  void addGradients(ParameterBinding& binding);
  void addFirstImages(const data::Batch& batch);
  void submit();

  const cluster::SummariesSpec spec_;
  const bool has_metrics_;
  const ClassNames class_names_;  // for the report
  const arena::ModelDeclaration& declaration_;
  const double examples_per_step_;
  const Clock& clock_;

  uint64_t step_ = 0;           // the newest seen
  uint64_t measured_step_ = 0;  // of the last summary
  TimePoint measured_at_;
  bool images_left_out_ = false;             // some did not fit, which is logged once
  std::optional<summary::StepSummary> due_;  // of measured_step_, without its batch yet
  summary::EventWriter writer_;
};

}  // namespace dtf::train
