#include "common/train/training_metrics.h"

#include "common/model/model_graph.h"

namespace dtf::train {

TrainingMetrics::TrainingMetrics(const model::ModelSpec& model, int64_t batch_size,
                                 const runtime::KernelTable& kernels, runtime::Device& device)
    : step_(model::buildForwardGraph(model, batch_size), kernels, device), judge_(model) {}

Evaluation TrainingMetrics::measure(const data::Batch& batch, std::span<const float* const> values,
                                    uint64_t seed, uint64_t number) {
  for (uint32_t i = 0; i < values.size(); ++i) step_.bindValue(i, values[i]);
  step_.bindBatch(batch);
  step_.setRandomKey(seed, number);
  step_.run();
  Evaluation measured;
  measured.loss = step_.loss();
  measured.examples = step_.batchSize();
  if (step_.hasAccuracy()) measured.accuracy = step_.accuracy();
  if (judge_.asksForNothing()) return measured;
  const Tensor& labels = batch.parts.at(1);
  judge_.add(step_.outputs(), step_.batchSize(), labels.dtype(), labels.data());
  measured.metrics = judge_.take();
  return measured;
}

}  // namespace dtf::train
