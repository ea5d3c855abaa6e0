#pragma once

// How a job's data are dealt out: in steps of whole batches, or in epochs of all examples.

#include <cstdint>
#include <string>
#include <vector>

#include "common/cluster/batch_plan.h"
#include "common/cluster/spec.h"
#include "common/model/model_graph.h"

namespace dtf::train {

// `name` is what messages call the data.
// Errors: kBadConfig for `steps` with larger batches than there are examples, and where there are
// none, or more than can be shuffled.
void checkBatches(const cluster::TrainSpec& train, int64_t examples, const std::string& name);

// Returns the plan of the batches that `workers` compute of so many examples.
// Errors: those of checkBatches().
cluster::BatchPlan planOf(const cluster::TrainSpec& train, int64_t examples, uint32_t workers);

// Returns TrainSpec::steps, or as many steps as the epochs take with so many examples: in sync mode
// an epoch is whole steps, the last with what remains; in async mode it is a step for each batch.
// Errors: those of checkBatches().
uint64_t stepsOf(const cluster::TrainSpec& train, int64_t examples, uint32_t workers);

// Returns the factor for the rows of tables in the gradient of a batch: its examples, divided by
// those of the largest batch. The mean of a row is over the batches that name it, so each example
// of an epoch then changes a row as much. BatchPlan::weight() is the factor for all else.
double rowWeight(const cluster::BatchPlan& plan, uint64_t number);

// Returns how many examples the batches of worker `rank` have, as BatchPlan::counts() does: the
// largest number of the job, for which all workers compare the kernels, and its own. A chief that
// times kernels does so for all workers, and has all numbers.
std::vector<int64_t> countsOf(const cluster::TrainSpec& train, const cluster::BatchPlan& plan,
                              uint32_t rank, uint32_t workers);

// Returns trainingGraphOf() for `count` examples: a whole batch, or a share of one, or, where
// `is_short`, what an epoch has left. Errors: those of trainingGraphOf().
model::ModelGraph graphOf(const cluster::TrainSpec& train, int64_t count, bool is_short);

// Returns `train` with a batch that is no larger than the data, which one worker takes alone. Where
// there are 0 examples, their number is not known yet, and the batch is that of the file.
cluster::TrainSpec withLargestBatch(cluster::TrainSpec train, int64_t examples);

}  // namespace dtf::train
