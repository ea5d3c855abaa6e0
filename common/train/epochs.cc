#include "common/train/epochs.h"

#include <algorithm>
#include <set>

#include "common/base/check.h"
#include "common/base/ids.h"
#include "common/data/dataset.h"
#include "common/model/short_batch.h"
#include "common/optimizer/sparse_update.h"
#include "common/replication/replication_rules.h"
#include "common/train/initial_values.h"

namespace dtf::train {

// With epochs the only batch may be shorter than batch_size.
void checkBatches(const cluster::TrainSpec& train, int64_t examples, const std::string& name) {
  const int64_t batch = train.data.batch_size;
  const bool all_short = train.epochs > 0 && examples > 0;
  data::checkBatchSize(all_short ? std::min(batch, examples) : batch, examples, name);
}

cluster::BatchPlan planOf(const cluster::TrainSpec& train, int64_t examples, uint32_t workers) {
  checkBatches(train, examples, "the training data");
  const auto batch = static_cast<uint64_t>(train.data.batch_size);
  const auto all = static_cast<uint64_t>(examples);
  if (train.epochs == 0) return cluster::BatchPlan::ofWholeBatches(all, batch);
  return replication::epochPlan(replication::completeReplication(train.replication, workers),
                                workers, all, batch);
}

uint64_t stepsOf(const cluster::TrainSpec& train, int64_t examples, uint32_t workers) {
  DTF_CHECK(workers > 0);
  if (train.epochs == 0) return train.steps;
  return train.epochs * planOf(train, examples, workers).groupsPerEpoch();
}

double rowWeight(const cluster::BatchPlan& plan, uint64_t number) {
  return static_cast<double>(plan.range(number).count) / static_cast<double>(plan.range(0).count);
}

std::vector<int64_t> countsOf(const cluster::TrainSpec& train, const cluster::BatchPlan& plan,
                              uint32_t rank, uint32_t workers) {
  std::vector<int64_t> counts = plan.counts();
  const cluster::ReplicationSpec replication =
      replication::completeReplication(train.replication, workers);
  const bool times = train.kernels == cluster::KernelRule::kTimed && rank == kChief.index;
  if (train.epochs == 0 || times || !replication::sharesSteps(replication)) return counts;
  const uint32_t of_step = replication::batchesOfOrderStep(replication, workers);
  std::set<int64_t> own = {counts.front()};
  for (const uint64_t step : {uint64_t{0}, plan.groupsPerEpoch() - 1})
    for (uint32_t batch = 0; batch < replication::batchesPerStep(replication, rank); ++batch)
      own.insert(static_cast<int64_t>(
          plan.range(cluster::globalBatch(step, batch, rank, workers, of_step)).count));
  std::erase_if(counts, [&own](int64_t count) { return !own.contains(count); });
  return counts;
}

model::ModelGraph graphOf(const cluster::TrainSpec& train, int64_t count, bool is_short) {
  cluster::TrainSpec of_count = train;
  of_count.data.batch_size = count;
  if (!is_short) return trainingGraphOf(of_count);
  return model::buildShortTrainingGraph(train.model, count,
                                        optimizer::updatesRows(train.optimizer)
                                            ? model::TableGradient::kSparse
                                            : model::TableGradient::kDense);
}

cluster::TrainSpec withLargestBatch(cluster::TrainSpec train, int64_t examples) {
  if (train.epochs > 0 && examples > 0)
    train.data.batch_size = std::min(train.data.batch_size, examples);
  return train;
}

}  // namespace dtf::train
