#pragma once

// A plan says which examples of an epoch each batch of a job has. Workers read their batches by it,
// and a ps weighs their gradients by it: it follows from a few numbers, so nothing is sent or
// saved.
//
// All batches of a job are numbered (globalBatch()). An epoch is a permutation of the data set
// (data/batch_order.h), dealt out in groups of batches:
//
//                     a group                           examples that fill no group
//   ofWholeBatches()  one batch                         left out of that epoch: each leaves out
//                                                       others
//   ofEpochs()        the batches of one sync step;     the last group of the epoch: its batches
//                     of async training one batch       share them evenly, some may be empty

#include <cstdint>
#include <vector>

namespace dtf::cluster {

// Batch number of `batch`, the b-th batch that worker `rank` of `workers` contributes to `step`.
// `batches_of_step`: see ps::batchesOfOrderStep(); batch * workers + rank is less (DTF_CHECK).
uint64_t globalBatch(uint64_t step, uint32_t batch, uint32_t rank, uint32_t workers,
                     uint32_t batches_of_step);

// Some of several things in a row: `count` of them from `first` on.
struct Share {
  uint64_t first = 0;
  uint64_t count = 0;
  bool operator==(const Share&) const = default;
};

// Share `index` of `shares` of `total` things in a row. The first ones have one more where they
// can't all have equally many.
Share evenShare(uint64_t total, uint64_t shares, uint64_t index);

// The examples of one batch: `count` of the permutation of `epoch`, from its place `first` on.
struct BatchRange {
  uint64_t epoch = 0;
  uint64_t first = 0;
  uint64_t count = 0;  // 0: a share that is empty
  bool operator==(const BatchRange&) const = default;
};

// Value type. Immutable, hence thread-safe.
class BatchPlan {
 public:
  // `examples` is at least `batch_size`, which is at least 1 (DTF_CHECK).
  static BatchPlan ofWholeBatches(uint64_t examples, uint64_t batch_size);
  // Every example once an epoch. All numbers are at least 1 (DTF_CHECK).
  static BatchPlan ofEpochs(uint64_t examples, uint64_t batch_size, uint32_t batches_of_group);

  uint64_t examples() const { return examples_; }
  uint64_t groupsPerEpoch() const { return groups_; }
  uint64_t examplesOfLargestGroup() const { return examplesOfGroup(0); }
  // The mean over an epoch.
  double examplesPerGroup() const;

  BatchRange range(uint64_t number) const;

  // Returns the factor of a batch's gradient: 1 in the largest groups, and less where the group has
  // fewer examples, so that each example of an epoch changes as much.
  double weight(uint64_t number) const;

  // Returns the numbers of examples that batches have: each once, the largest first, without 0.
  std::vector<int64_t> counts() const;

 private:
  BatchPlan(uint64_t examples, uint64_t batch_size, uint32_t batches, uint64_t groups)
      : examples_(examples), batch_size_(batch_size), batches_(batches), groups_(groups) {}
  uint64_t fullGroup() const { return batch_size_ * batches_; }
  uint64_t examplesOfGroup(uint64_t group) const;

  uint64_t examples_;
  uint64_t batch_size_;
  uint32_t batches_;  // of a group
  uint64_t groups_;   // of an epoch
};

}  // namespace dtf::cluster
