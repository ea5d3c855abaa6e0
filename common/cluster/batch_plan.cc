#include "common/cluster/batch_plan.h"

#include <algorithm>

#include "common/base/check.h"

namespace dtf::cluster {

uint64_t globalBatch(uint64_t step, uint32_t batch, uint32_t rank, uint32_t workers,
                     uint32_t batches_of_step) {
  const uint64_t index = uint64_t{batch} * workers + rank;
  DTF_CHECK(rank < workers && index < batches_of_step);
  return step * batches_of_step + index;
}

Share evenShare(uint64_t total, uint64_t shares, uint64_t index) {
  DTF_CHECK(index < shares);
  const uint64_t least = total / shares;
  const uint64_t larger = total % shares;  // shares that have one more
  return {index * least + std::min(index, larger), least + (index < larger ? 1 : 0)};
}

BatchPlan BatchPlan::ofWholeBatches(uint64_t examples, uint64_t batch_size) {
  DTF_CHECK(batch_size > 0 && examples >= batch_size);
  return {examples, batch_size, 1, examples / batch_size};
}

BatchPlan BatchPlan::ofEpochs(uint64_t examples, uint64_t batch_size, uint32_t batches_of_group) {
  DTF_CHECK(examples > 0 && batch_size > 0 && batches_of_group > 0);
  const uint64_t group = batch_size * batches_of_group;
  return {examples, batch_size, batches_of_group, (examples + group - 1) / group};
}

double BatchPlan::examplesPerGroup() const {
  const uint64_t dealt = std::min(examples_, groups_ * fullGroup());
  return static_cast<double>(dealt) / static_cast<double>(groups_);
}

uint64_t BatchPlan::examplesOfGroup(uint64_t group) const {
  return std::min(fullGroup(), examples_ - group % groups_ * fullGroup());
}

BatchRange BatchPlan::range(uint64_t number) const {
  const uint64_t group = number / batches_;
  const Share share = evenShare(examplesOfGroup(group), batches_, number % batches_);
  return {group / groups_, group % groups_ * fullGroup() + share.first, share.count};
}

double BatchPlan::weight(uint64_t number) const {
  return static_cast<double>(examplesOfGroup(number / batches_)) /
         static_cast<double>(examplesOfLargestGroup());
}

std::vector<int64_t> BatchPlan::counts() const {
  std::vector<int64_t> counts;
  const auto add = [&counts](uint64_t count) {
    const auto signed_count = static_cast<int64_t>(count);
    if (count > 0 && std::ranges::find(counts, signed_count) == counts.end())
      counts.push_back(signed_count);
  };
  for (const uint64_t group : {uint64_t{0}, groups_ - 1})
    for (const uint64_t batch : {uint64_t{0}, uint64_t{batches_} - 1})
      add(range(group * batches_ + batch).count);
  return counts;
}

}  // namespace dtf::cluster
