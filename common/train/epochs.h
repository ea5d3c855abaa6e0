#pragma once

// How a job's data are divided: into steps of whole batches, or into epochs of all examples.

#include <cstdint>
#include <string>
#include <vector>

#include "common/cluster/batch_plan.h"
#include "common/cluster/spec.h"
#include "common/model/model_graph.h"

namespace dtf::train {

// Checks the batch size against the number of examples. `name`: of the data, for messages.
// Errors: kBadConfig if there are no examples, or more than can be shuffled; for a job of `steps`,
// also if the batch is larger than the data.
void checkBatches(const cluster::TrainSpec& train, int64_t examples, const std::string& name);

// Returns the plan of the batches that `workers` compute of `examples`.
// Errors: as checkBatches().
cluster::BatchPlan planOf(const cluster::TrainSpec& train, int64_t examples, uint32_t workers);

// Returns TrainSpec::steps, or the number of steps that the epochs take with `examples`. In sync
// mode an epoch is whole steps, the last with the remaining examples; in async mode it is a step
// for each batch.
// Errors: as checkBatches().
uint64_t stepsOf(const cluster::TrainSpec& train, int64_t examples, uint32_t workers);

// Returns the factor for the rows of tables in the gradient of a batch: its number of examples,
// divided by the largest batch's. The mean of a row is over the batches that name it, so with this
// factor each example of an epoch changes a row equally. BatchPlan::weight() is the factor for all
// other gradients.
double rowWeight(const cluster::BatchPlan& plan, uint64_t number);

// Returns the sizes of the batches of worker `rank`, as BatchPlan::counts(). It always includes the
// job's largest size, as all workers compare their kernels for it. A chief that times kernels has
// all sizes, as it times them for all workers.
std::vector<int64_t> countsOf(const cluster::TrainSpec& train, const cluster::BatchPlan& plan,
                              uint32_t rank, uint32_t workers);

// Returns trainingGraphOf() for `count` examples: a whole batch, a share of one, or, if `is_short`,
// the rest of an epoch.
// Errors: as trainingGraphOf().
model::ModelGraph graphOf(const cluster::TrainSpec& train, int64_t count, bool is_short);

// Returns `train`, with a batch that is no larger than the data if it has epochs. If `examples` is
// 0, their number isn't known yet, and the batch stays.
cluster::TrainSpec withLargestBatch(cluster::TrainSpec train, int64_t examples);

}  // namespace dtf::train
