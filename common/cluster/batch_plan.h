#pragma once

// Assigns the examples of each epoch to the batches of a job. Workers read their batches by the
// plan, and a ps weighs their gradients by it. It is computed from a few numbers, so it is neither
// sent nor saved.
//
// All batches of a job are numbered (globalBatch()). An epoch is a permutation of the data set
// (data/batch_order.h), divided into groups of batches:
//
//                     a group                           examples that fill no group
//   ofWholeBatches()  one batch                         left out of this epoch: another epoch
//                                                       leaves out others
//   ofEpochs()        sync: the batches of one step;    the last group of the epoch: its batches
//                     async: one batch                  share them evenly, some may be empty

#include <cstdint>
#include <vector>

namespace dtf::cluster {

// Returns the number of `batch`, the b-th batch that worker `rank` of `workers` computes in `step`.
// `batches_of_step`: see replication::batchesOfOrderStep(); batch * workers + rank is less
// (DTF_CHECK).
uint64_t globalBatch(uint64_t step, uint32_t batch, uint32_t rank, uint32_t workers,
                     uint32_t batches_of_step);

// A range of consecutive items: `count` of them from `first` on.
struct Share {
  uint64_t first = 0;
  uint64_t count = 0;
  bool operator==(const Share&) const = default;
};

// Returns share `index` of `shares` of `total` consecutive items. If they don't divide evenly, the
// first shares have one more.
Share evenShare(uint64_t total, uint64_t shares, uint64_t index);

// The examples of one batch: `count` of the permutation of `epoch`, from position `first` on.
struct BatchRange {
  uint64_t epoch = 0;
  uint64_t first = 0;
  uint64_t count = 0;  // 0: an empty batch
  bool operator==(const BatchRange&) const = default;
};

// Value type. Immutable, hence thread-safe.
class BatchPlan {
 public:
  // `examples` is at least `batch_size`, which is at least 1 (DTF_CHECK).
  static BatchPlan ofWholeBatches(uint64_t examples, uint64_t batch_size);
  // Uses every example once an epoch. All numbers are at least 1 (DTF_CHECK).
  static BatchPlan ofEpochs(uint64_t examples, uint64_t batch_size, uint32_t batches_of_group);

  uint64_t examples() const { return examples_; }
  uint64_t groupsPerEpoch() const { return groups_; }
  uint64_t examplesOfLargestGroup() const { return examplesOfGroup(0); }
  double examplesPerGroup() const;  // mean over an epoch

  BatchRange range(uint64_t number) const;

  // Returns the factor of a batch's gradient: 1 in the largest groups, less in a group with fewer
  // examples, so that each example of an epoch has the same weight.
  double weight(uint64_t number) const;

  // Returns the sizes of batches that occur: each once, the largest first, without 0.
  std::vector<int64_t> counts() const;

 private:
  BatchPlan(uint64_t examples, uint64_t batch_size, uint32_t batches, uint64_t groups)
      : examples_(examples), batch_size_(batch_size), batches_(batches), groups_(groups) {}
  uint64_t fullGroup() const { return batch_size_ * batches_; }
  uint64_t examplesOfGroup(uint64_t group) const;

  uint64_t examples_;
  uint64_t batch_size_;
  uint32_t batches_;  // in a group
  uint64_t groups_;   // in an epoch
};

}  // namespace dtf::cluster
