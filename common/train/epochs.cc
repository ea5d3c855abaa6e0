#include "common/train/epochs.h"

#include "common/base/check.h"
#include "common/data/dataset.h"
#include "common/ps/replication_rules.h"

namespace dtf::train {

uint64_t stepsOf(const cluster::TrainSpec& train, int64_t examples, uint32_t workers) {
  DTF_CHECK(workers > 0);
  if (train.epochs == 0) return train.steps;
  data::checkBatchSize(train.data.batch_size, examples, "the training data");
  const uint64_t batches = train.epochs * static_cast<uint64_t>(examples / train.data.batch_size);
  const cluster::ReplicationSpec replication = ps::completeReplication(train.replication, workers);
  // Of an asynchronous job each batch is a step.
  const uint64_t of_step =
      ps::sharesSteps(replication) ? ps::batchesOfOrderStep(replication, workers) : 1;
  return (batches + of_step - 1) / of_step;
}

}  // namespace dtf::train
