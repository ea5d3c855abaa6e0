#include "common/train/training_metrics.h"

#include <algorithm>

#include "common/base/check.h"
#include "common/cluster/batch_plan.h"
#include "common/model/model_graph.h"
#include "common/train/tower.h"

namespace dtf::train {

namespace {

int64_t largestShare(uint64_t batch_size, uint64_t towers) {
  return static_cast<int64_t>(cluster::evenShare(batch_size, towers, 0).count);
}

}  // namespace

TrainingMetrics::TrainingMetrics(const model::ModelSpec& model, int64_t batch_size, uint32_t towers,
                                 const runtime::KernelTable& kernels, runtime::Device& device)
    : batch_size_(static_cast<uint64_t>(batch_size)),
      towers_(std::min<uint64_t>(towers, batch_size_)),
      step_(model::buildForwardGraph(model, largestShare(batch_size_, towers_)), kernels, device),
      judge_(model) {
  if (batch_size_ % towers_ != 0)
    smaller_.emplace(model::buildForwardGraph(model, step_.batchSize() - 1), kernels, device);
}

Evaluation TrainingMetrics::measure(const data::Batch& batch, std::span<const float* const> values,
                                    uint64_t seed, uint64_t number) {
  DTF_CHECK(batch.count == static_cast<int64_t>(batch_size_));
  for (uint32_t i = 0; i < values.size(); ++i) {
    step_.bindValue(i, values[i]);
    if (smaller_) smaller_->bindValue(i, values[i]);
  }
  double loss = 0, accuracy = 0;
  const Tensor& labels = batch.parts.at(1);
  const size_t label_bytes = labels.bytes() / static_cast<size_t>(labels.shape().dim(0));
  for (uint32_t tower = 0; tower < towers_; ++tower) {
    const cluster::Share share = cluster::evenShare(batch_size_, towers_, tower);
    const auto examples = static_cast<int64_t>(share.count);
    ModelStep& step = examples == step_.batchSize() ? step_ : smaller_.value();
    step.bindExamples(batch, static_cast<int64_t>(share.first));
    step.setRandomKey(seed, maskNumber(number, tower));
    step.run();
    loss += static_cast<double>(examples) * step.loss();
    if (step.hasAccuracy()) accuracy += static_cast<double>(examples) * step.accuracy();
    for (size_t i = 0; i < judge_.scalars(); ++i) judge_.addScalar(i, step.scalar(i), examples);
    if (judge_.asksForNothing()) continue;
    judge_.add(step.outputs(), examples, labels.dtype(), labels.data() + label_bytes * share.first);
  }
  const auto examples = static_cast<double>(batch_size_);
  Evaluation measured;
  measured.loss = loss / examples;
  measured.examples = batch.count;
  if (step_.hasAccuracy()) measured.accuracy = accuracy / examples;
  measured.metrics = judge_.take();
  return measured;
}

}  // namespace dtf::train
