#include "common/data/batch_order.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/base/random_streams.h"

namespace dtf::data {

namespace {

// Returns a uniform number in [0, bound), bound > 0: Lemire, "Fast random integer generation in an
// interval", ACM TOMACS 29 (2019). It multiplies where Random::below() divides twice: a shuffle
// does nothing else.
uint32_t below(Random& random, uint32_t bound) {
  uint64_t product = uint64_t{random.next32()} * bound;
  if (static_cast<uint32_t>(product) < bound) {
    const uint32_t threshold = (0U - bound) % bound;
    while (static_cast<uint32_t>(product) < threshold) product = uint64_t{random.next32()} * bound;
  }
  return static_cast<uint32_t>(product >> 32);
}

cluster::BatchPlan wholeBatches(const Dataset& dataset, int64_t batch_size) {
  checkBatchSize(batch_size, dataset.size(), dataset.features().source());
  return cluster::BatchPlan::ofWholeBatches(static_cast<uint64_t>(dataset.size()),
                                            static_cast<uint64_t>(batch_size));
}

// Examples lie anywhere in memory: prefetching their first cache lines hides most of the misses.
void copyExamples(const Part& from, std::span<const uint32_t> order, Tensor& to) {
  constexpr size_t kAhead = 4;
  constexpr size_t kLineBytes = 64;
  const size_t bytes = from.spec().bytes();
  DTF_CHECK(to.dtype() == from.spec().dtype && to.bytes() >= order.size() * bytes);
  const size_t asked = std::min<size_t>(bytes, 1024);
  std::byte* next = to.data();
  for (size_t i = 0; i < order.size(); ++i, next += bytes) {
    if (i + kAhead < order.size()) {
      const uint8_t* const ahead = from.of(order[i + kAhead]).data();
      for (size_t line = 0; line < asked; line += kLineBytes) __builtin_prefetch(ahead + line);
    }
    std::memcpy(next, from.of(order[i]).data(), bytes);
  }
}

}  // namespace

void EpochShuffle::start(uint64_t epoch) {
  epoch_ = epoch;
  random_ = Random(seed_, streamOf(RandomStream::kBatchOrder, epoch));
  std::iota(order_.begin(), order_.end(), 0U);
  done_ = 0;
}

void EpochShuffle::advanceTo(uint64_t positions) {
  for (; done_ < std::min<uint64_t>(positions, order_.size()); ++done_) {
    const auto left = static_cast<uint32_t>(order_.size() - done_);
    std::swap(order_[left - 1], order_[below(random_, left)]);
  }
}

BatchReader::BatchReader(std::shared_ptr<const Dataset> dataset, int64_t batch_size, uint64_t seed,
                         const cluster::AugmentSpec& augment)
    : BatchReader(dataset, wholeBatches(*dataset, batch_size), seed, augment) {}

BatchReader::BatchReader(std::shared_ptr<const Dataset> dataset, const cluster::BatchPlan& plan,
                         uint64_t seed, const cluster::AugmentSpec& augment)
    : dataset_(std::move(dataset)),
      plan_(plan),
      augmenter_(augment.any() ? std::optional<Augmenter>(std::in_place, augment,
                                                          dataset_->features().spec(), seed)
                               : std::nullopt),
      shuffles_{EpochShuffle(seed, static_cast<uint32_t>(dataset_->size())),
                EpochShuffle(seed, static_cast<uint32_t>(dataset_->size()))} {
  DTF_CHECK(plan_.examples() == static_cast<uint64_t>(dataset_->size()) &&
            plan_.examples() <= std::numeric_limits<uint32_t>::max());
  current_->start(0);
  current_->complete();
  next_->start(1);
}

void BatchReader::enterEpoch(uint64_t epoch) {
  DTF_CHECK(epoch != current_->epoch());
  if (next_->epoch() == epoch) {
    std::swap(current_, next_);
  } else {
    current_->start(epoch);
  }
  current_->complete();
  next_->start(epoch + 1);
}

std::span<const uint32_t> BatchReader::examples(uint64_t global_batch) {
  const cluster::BatchRange range = plan_.range(global_batch);
  if (range.count == 0) return {};
  if (range.epoch != current_->epoch()) enterEpoch(range.epoch);
  DTF_CHECK(current_->epoch() == range.epoch);
  return current_->order().subspan(range.first, range.count);
}

void BatchReader::augment(std::span<const uint32_t> order, Tensor& to) const {
  const Part& from = dataset_->features();
  const size_t bytes = from.spec().bytes();
  DTF_CHECK(to.bytes() >= order.size() * bytes);
  auto* next = reinterpret_cast<uint8_t*>(to.data());
  for (const uint32_t example : order) {
    augmenter_->apply(current_->epoch(), example, from.of(example), {next, bytes});
    next += bytes;
  }
}

void BatchReader::read(uint64_t global_batch, Batch& batch) {
  const std::span<const uint32_t> order = examples(global_batch);
  DTF_CHECK(batch.parts.size() == dataset_->parts().size());
  batch.count = static_cast<int64_t>(order.size());
  if (order.empty()) return;
  // Lets the disk read them in parallel, ahead of the copies.
  for (const Part& part : dataset_->parts())
    if (part.onDisk())
      for (const uint32_t example : order) part.willNeed(example);
  if (augmenter_) augment(order, batch.parts[0]);
  for (size_t part = augmenter_ ? 1 : 0; part < batch.parts.size(); ++part)
    copyExamples(dataset_->parts()[part], order, batch.parts[part]);
  // Keeps the next permutation as far along as this epoch, even if other workers read most of its
  // batches.
  const cluster::BatchRange range = plan_.range(global_batch);
  next_->advanceTo(range.first + range.count);
}

}  // namespace dtf::data
