#pragma once

// Chooses the examples of each batch by a pure function of (seed, plan, batch number), so that a
// run can be repeated, resumed and checked from the numbers alone.
//
// All batches of a job are numbered g = step * batches_of_step + i. In sync mode i counts the
// batches of a step; in async mode, where each worker counts its own steps, i is the worker's rank.
// An epoch is a fresh permutation of the data set, cut in order by cluster/batch_plan.h, so no
// example comes twice in it.

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "common/base/random.h"
#include "common/cluster/batch_plan.h"
#include "common/data/augment.h"
#include "common/data/dataset.h"

namespace dtf::data {

// A permutation of 0..size-1, made in any number of instalments: Fisher-Yates, Durstenfeld's
// version (CACM algorithm 235, 1964). Thread-compatible.
class EpochShuffle {
 public:
  EpochShuffle(uint64_t seed, uint32_t size) : seed_(seed), random_(seed), order_(size) {}
  void start(uint64_t epoch);  // restarts in the same memory
  uint64_t epoch() const { return epoch_; }
  void advanceTo(
      uint64_t positions);  // makes at least that many of the permutation's positions final
  void complete() { advanceTo(order_.size()); }
  std::span<const uint32_t> order() const { return order_; }  // the permutation, once complete

 private:
  const uint64_t seed_;
  uint64_t epoch_ = 0;
  Random random_;
  std::vector<uint32_t> order_;
  uint64_t done_ = 0;  // the last `done_` positions are final
};

// Copies batches out of a data set.
// Owns: the permutation of the current epoch, and of the next one, which it extends as batches are
// read, so that no step waits for a shuffle.  Shares: the data set.
// Threads: thread-compatible; each worker has its own.
// Blocks: on the disk, for a data set that is onDisk().
class BatchReader {
 public:
  // `plan` is for this data set, of 2^32 - 1 examples at most (DTF_CHECK). `augment` changes the
  // features of each example that is read, which must be images (DTF_CHECK).
  BatchReader(std::shared_ptr<const Dataset> dataset, const cluster::BatchPlan& plan, uint64_t seed,
              const cluster::AugmentSpec& augment = {});
  // Reads whole batches.
  // Errors: see checkBatchSize().
  BatchReader(std::shared_ptr<const Dataset> dataset, int64_t batch_size, uint64_t seed,
              const cluster::AugmentSpec& augment = {});
  BatchReader(const BatchReader&) = delete;
  BatchReader& operator=(const BatchReader&) = delete;

  const Dataset& dataset() const { return *dataset_; }

  // Returns the examples of batch `global_batch`; valid until the next call. Cheap within an epoch
  // and when the next epoch begins; any other epoch costs a shuffle (about 10 ns an example).
  std::span<const uint32_t> examples(uint64_t global_batch);

  // Copies batch `global_batch` to `batch`, which is made for this data set and large enough
  // (DTF_CHECK). Allocates nothing.
  void read(uint64_t global_batch, Batch& batch);

 private:
  void enterEpoch(uint64_t epoch);
  void augment(std::span<const uint32_t> order, Tensor& to) const;

  const std::shared_ptr<const Dataset> dataset_;
  const cluster::BatchPlan plan_;
  const std::optional<Augmenter> augmenter_;
  std::array<EpochShuffle, 2> shuffles_;
  EpochShuffle* current_ = &shuffles_[0];
  EpochShuffle* next_ = &shuffles_[1];
};

}  // namespace dtf::data
