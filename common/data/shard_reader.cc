#include "common/data/shard_reader.h"

#include <fmt/core.h>

#include <cstring>
#include <limits>
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
  checkSteps();
}

// An end of 0 steps would read as no end.
void ShardReader::checkSteps() const {
  if (options_.epochs == 0 || steps() > 0) return;
  const auto examples = static_cast<uint64_t>(dataset_->size());
  const uint64_t batches = examples / static_cast<uint64_t>(options_.batch_size);
  const uint64_t batches_needed = (options_.of + options_.epochs - 1) / options_.epochs;
  std::string remedy = fmt::format("set batch_size to at most {}", examples / batches_needed);
  if (batches > 0)
    remedy += fmt::format(", or epochs to at least {}", (options_.of + batches - 1) / batches);
  throw Error(
      ErrorCode::kBadConfig,
      fmt::format("{} has {} examples: with batches of {}, there is no step of {} shards in {}; {}",
                  dataset_->features().source(), examples, options_.batch_size, options_.of,
                  epochsText(options_.epochs), remedy));
}

Batch ShardReader::readBatch(uint64_t step) {
  if (!batches_) batches_.emplace(dataset_, options_.batch_size, options_.seed, options_.augment);
  if (options_.epochs > 0 && step >= steps())
    throw Error(ErrorCode::kOutOfRange,
                fmt::format("step {} is beyond {} of {}, which have {} steps", step,
                            epochsText(options_.epochs), dataset_->features().source(), steps()));
  // The numbers of later batches don't fit.
  const uint64_t last = std::numeric_limits<uint64_t>::max() / options_.of - 1;
  if (step > last)
    throw Error(ErrorCode::kOutOfRange, fmt::format("step {} is beyond {}, the last of {} shards",
                                                    step, last, options_.of));
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
                fmt::format("a batch of {} exceeds the {} examples left in {} of {}", count,
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
  if (first < 0)
    throw Error(ErrorCode::kOutOfRange,
                fmt::format("example {} does not exist: the first of {} is 0", first,
                            dataset_->features().source()));
  if (first > dataset_->size() || count > dataset_->size() - first)
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
