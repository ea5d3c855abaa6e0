#pragma once

// The chief's summaries, as TensorFlow's Supervisor writes them: scalars and histograms now and
// then, the graph once, and when the session starts, saves and stops. Only the chief has them.
//
//   loss, learning_rate, global_step/sec, examples/sec     scalars
//   accuracy, METRIC                                       scalars, where the model asks for them:
//                                                          of the chief's next batch, as training
//                                                          sees it
//   features/image/N                                       the first images of that batch, on
//                                                          demand: see batch_images.h
//   eval/loss, eval/accuracy, eval/METRIC                  scalars, at each evaluation
//   <variable>, <variable>/gradient                        histograms: the values at one global
//                                                          step; the gradient of the chief's next
//                                                          batch there, as it is pushed

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/cluster/spec.h"
#include "common/summary/event_writer.h"
#include "common/train/step_observer.h"
#include "common/train/training_loop.h"

namespace dtf::train {

// Owns: the event writer with its thread.
// Borrows: `loop`'s declaration and model, `clock`, `file_system`.
// Threads: the training thread's, but onCheckpoint(): any.
// Blocks: only finish() and the destructor, until what was measured is written. A summary that is
// due costs the training thread a copy of the variables and one of the gradients, and where the
// model has metrics a forward pass.
// Errors: none; finish() says what the disk refused.
class Summaries final : public StepObserver {
 public:
  Summaries(const cluster::TrainSpec& train, const TrainingLoop& loop, FileSystem& file_system,
            const std::filesystem::path& folder, const Clock& clock);
  void onParameters(const ps::StepState& state, ParameterBinding& binding, bool first) override;
  void onGradients(ParameterBinding& binding, const ComputedBatch& batch) override;
  void onEvaluation(uint64_t global_step, const Evaluation& evaluation) override;
  void onCheckpoint(uint64_t global_step);

  // The session stops; waits until all is written. The last call.
  summary::EventWriterStatus finish();

 private:
  void startSession();
  bool isDue(uint64_t global_step);
  bool needsBatch() const { return spec_.histograms || spec_.images > 0 || has_metrics_; }
  void addScalars(const ps::StepState& state);
  void addGradients(ParameterBinding& binding);
  void addFirstImages(const data::Batch& batch);
  void submit();

  const cluster::SummariesSpec spec_;
  const bool has_metrics_;
  const ps::ModelDeclaration& declaration_;
  const double examples_per_step_;
  const Clock& clock_;

  uint64_t step_ = 0;           // the newest that was seen
  uint64_t measured_step_ = 0;  // of the last summary
  TimePoint measured_at_;
  bool images_left_out_ = false;             // some of some summary
  std::optional<summary::StepSummary> due_;  // of measured_step_: waits for its batch
  summary::EventWriter writer_;
};

}  // namespace dtf::train
