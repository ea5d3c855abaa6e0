#pragma once

// The batches of one of several programs that share a data set, for programs of a user's own.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "common/cluster/data_spec.h"
#include "common/data/augment.h"
#include "common/data/batch_order.h"
#include "common/data/dataset.h"

namespace dtf::data {

struct ShardOptions {
  int64_t batch_size = 1;  // of readBatch()
  uint64_t seed = 1;
  cluster::AugmentSpec augment{};
  uint32_t rank = 0;    // less than `of` (DTF_CHECK)
  uint32_t of = 1;      // shards
  uint64_t epochs = 0;  // 0: without end
};

// Owns: the permutations of the epochs that are being read: 4 bytes an example, three at most.
// Shares: the data set.
// Threads: thread-compatible.
// Blocks: on the disk, for a data set that is onDisk(); for a shuffle when an epoch begins.
// Errors: kOutOfRange beyond the last epoch; kBadConfig as checkBatchSize(), and for epochs without
// a step.
class ShardReader {
 public:
  ShardReader(std::shared_ptr<const Dataset> dataset, const ShardOptions& options);
  ShardReader(const ShardReader&) = delete;
  ShardReader& operator=(const ShardReader&) = delete;

  const Dataset& dataset() const { return *dataset_; }
  int64_t batchSize() const { return options_.batch_size; }

  // ---- a batch as a function of the step

  // Returns this shard's batch of a step: batch `step * of + rank` of all (BatchReader), as of a
  // job's worker in sync mode.
  Batch readBatch(uint64_t step);
  // Returns the steps in which every shard has a batch; 0: epochs is 0, they have no end.
  uint64_t steps() const;

  // ---- the examples one after another

  // Returns the next `count` examples of this shard, at least 1: every `of`-th of each epoch's
  // permutation. After an error the position is as before.
  Batch readNext(int64_t count);
  uint64_t epochsCompleted() const { return position_ / perEpoch(); }

  // ---- the examples in their own order

  // Returns `count` examples, at least 1, from `first` on, as they are in the data set.
  Batch readSlice(int64_t first, int64_t count) const;

 private:
  void checkSteps() const;
  // The number of this shard's examples in each epoch.
  uint64_t perEpoch() const;
  void copy(uint64_t epoch, uint32_t example, int64_t to, Batch& batch) const;

  const std::shared_ptr<const Dataset> dataset_;
  const ShardOptions options_;
  const std::optional<Augmenter> augmenter_;
  std::optional<BatchReader> batches_;   // from the first readBatch() on
  std::optional<EpochShuffle> shuffle_;  // from the first readNext() on
  uint64_t position_ = 0;                // of readNext(), in this shard's examples of all epochs
};

}  // namespace dtf::data
