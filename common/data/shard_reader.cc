#include "common/data/shard_reader.h"

#include <fmt/core.h>

#include <cstring>
#include <utility>

#include "common/base/check.h"
#include "common/base/error.h"

namespace dtf::data {

namespace {

void checkCount(int64_t count) {
  if (count < 1)
    throw Error(ErrorCode::kBadConfig,
                fmt::format("a batch has at least one example, not {}", count));
}

// Returns the number of epochs for a person: "the only epoch", "the 3 epochs".
std::string epochsText(uint64_t epochs) {
  return epochs == 1 ? "the only epoch" : fmt::format("the {} epochs", epochs);
}

}  // namespace

ShardReader::ShardReader(std::shared_ptr<const Dataset> dataset, const ShardOptions& options)
    : dataset_(std::move(dataset)),
      options_(options),
      augmenter_(options.augment.any()
                     ? std::optional<Augmenter>(std::in_place, options.augment,
                                                dataset_->features().spec(), options.seed)
                     : std::nullopt) {
  DTF_CHECK(options_.rank < options_.of && options_.batch_size >= 1);
  if (std::cmp_less(dataset_->size(), options_.of))
    throw Error(ErrorCode::kBadConfig,
                fmt::format("{} has {} examples, too few for {} shards",
                            dataset_->features().source(), dataset_->size(), options_.of));
  checkBatchSize(1, dataset_->size(), dataset_->features().source());
}

Batch ShardReader::readBatch(uint64_t step) {
  if (!batches_) batches_.emplace(dataset_, options_.batch_size, options_.seed, options_.augment);
  if (options_.epochs > 0 && step >= steps())
    throw Error(ErrorCode::kOutOfRange,
                fmt::format("step {} is beyond {} of {}, which have {} steps", step,
                            epochsText(options_.epochs), dataset_->features().source(), steps()));
  Batch batch(dataset_->parts(), options_.batch_size);
  batches_->read(cluster::globalBatch(step, 0, options_.rank, options_.of, options_.of), batch);
  DTF_CHECK(batch.count == options_.batch_size);
  return batch;
}

uint64_t ShardReader::steps() const {
  const auto batches = static_cast<uint64_t>(dataset_->size() / options_.batch_size);
  return options_.epochs * batches / options_.of;
}

uint64_t ShardReader::perEpoch() const {
  const auto examples = static_cast<uint64_t>(dataset_->size());
  return (examples - options_.rank + options_.of - 1) / options_.of;
}

Batch ShardReader::readNext(int64_t count) {
  checkCount(count);
  const auto wanted = static_cast<uint64_t>(count);
  if (options_.epochs > 0 && wanted > options_.epochs * perEpoch() - position_)
    throw Error(ErrorCode::kOutOfRange,
                fmt::format("{} examples are wanted, and {} are left in {} of {}", count,
                            options_.epochs * perEpoch() - position_, epochsText(options_.epochs),
                            dataset_->features().source()));
  Batch batch(dataset_->parts(), count);
  for (int64_t i = 0; i < count; ++i, ++position_) {
    const uint64_t epoch = position_ / perEpoch();
    if (!shuffle_) shuffle_.emplace(options_.seed, static_cast<uint32_t>(dataset_->size()));
    if (position_ % perEpoch() == 0) {
      shuffle_->start(epoch);
      shuffle_->complete();
    }
    DTF_CHECK(shuffle_->epoch() == epoch);
    const uint64_t at = position_ % perEpoch() * options_.of + options_.rank;
    copy(epoch, shuffle_->order()[at], i, batch);
  }
  return batch;
}

void ShardReader::copy(uint64_t epoch, uint32_t example, int64_t to, Batch& batch) const {
  for (size_t i = 0; i < batch.parts.size(); ++i) {
    const Part& from = dataset_->parts()[i];
    const size_t bytes = from.spec().bytes();
    auto* const at =
        reinterpret_cast<uint8_t*>(batch.parts[i].data()) + static_cast<size_t>(to) * bytes;
    if (i == 0 && augmenter_)
      augmenter_->apply(epoch, example, from.of(example), {at, bytes});
    else
      std::memcpy(at, from.of(example).data(), bytes);
  }
}

Batch ShardReader::readSlice(int64_t first, int64_t count) const {
  checkCount(count);
  if (first < 0 || first > dataset_->size() || count > dataset_->size() - first)
    throw Error(ErrorCode::kOutOfRange,
                fmt::format("{} has {} examples, and none from {} to {}",
                            dataset_->features().source(), dataset_->size(), first,
                            static_cast<uint64_t>(first) + static_cast<uint64_t>(count) - 1));
  Batch batch(dataset_->parts(), count);
  for (size_t i = 0; i < batch.parts.size(); ++i) {
    const Part& from = dataset_->parts()[i];
    std::memcpy(batch.parts[i].data(), from.of(first).data(),
                static_cast<size_t>(count) * from.spec().bytes());
  }
  return batch;
}

}  // namespace dtf::data
