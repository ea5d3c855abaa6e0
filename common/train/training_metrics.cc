#include "common/train/training_metrics.h"

#include "common/model/model_graph.h"
#include "common/train/tower.h"

namespace dtf::train {

TrainingMetrics::TrainingMetrics(const model::ModelSpec& model, int64_t batch_size, uint32_t towers,
                                 const runtime::KernelTable& kernels, runtime::Device& device)
    : towers_(towers),
      step_(model::buildForwardGraph(model, batch_size / towers), kernels, device),
      judge_(model) {}

Evaluation TrainingMetrics::measure(const data::Batch& batch, std::span<const float* const> values,
                                    uint64_t seed, uint64_t number) {
  for (uint32_t i = 0; i < values.size(); ++i) step_.bindValue(i, values[i]);
  double loss = 0, accuracy = 0;
  for (uint32_t tower = 0; tower < towers_; ++tower) {
    step_.bindShare(batch, tower, towers_);
    step_.setRandomKey(seed, maskNumber(number, tower));
    step_.run();
    loss += step_.loss();
    if (step_.hasAccuracy()) accuracy += step_.accuracy();
    if (judge_.asksForNothing()) continue;
    const Tensor& labels = batch.parts.at(1);
    judge_.add(step_.outputs(), step_.batchSize(), labels.dtype(),
               labels.data() + labels.bytes() / towers_ * tower);
  }
  Evaluation measured;
  measured.loss = loss / towers_;
  measured.examples = step_.batchSize() * towers_;
  if (step_.hasAccuracy()) measured.accuracy = accuracy / towers_;
  if (!judge_.asksForNothing()) measured.metrics = judge_.take();
  return measured;
}

}  // namespace dtf::train
