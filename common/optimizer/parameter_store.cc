#include "common/optimizer/parameter_store.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/optimizer/gradient_math.h"
#include "common/optimizer/sparse_update.h"

namespace dtf::optimizer {

namespace {

// Current, previous and next take turns, and a steady state recycles them. More are in use while
// replies are read: by the network, or in place by workers of this host, each until its next call.
constexpr uint32_t kUnusedArenasMax = 3;

void copyInto(std::span<const float> from, float* to) {
  if (!from.empty()) std::memcpy(to, from.data(), from.size_bytes());
}

void requireSize(const std::string& what, uint64_t found, uint64_t wanted) {
  if (found == wanted) return;
  throw Error(ErrorCode::kBadData, "a checkpoint's " + what + " have " + std::to_string(found) +
                                       " elements for a shard of " + std::to_string(wanted) +
                                       "; resume the model that it was written from");
}

}  // namespace

UpdateArrays UpdateJob::arrays() const {
  UpdateArrays arrays;
  arrays.old_parameters = source_->data();
  arrays.new_parameters = target_->mutableData();
  for (uint32_t slot = 0; slot < kSlotsMax; ++slot) {
    arrays.slots[slot] = (*slots_)[slot].as<float>();
  }
  arrays.gradients = gradient_data_;
  arrays.weights = weights_;
  return arrays;
}

void UpdateJob::measure(uint64_t begin, uint64_t end) {
  DTF_CHECK(needsMeasuring() && begin <= end && end <= elements());
  norms_->measure(constants_, arrays(), begin, end);
  const uint64_t count = end - begin;
  // The last part sees the sums of all.
  if (elements_measured_.fetch_add(count, std::memory_order_acq_rel) + count == elements())
    norms_->finish(constants_);
}

void UpdateJob::run(uint64_t begin, uint64_t end) {
  DTF_CHECK(begin <= end && end <= elements());
  if (sparse_mean_ != nullptr) {
    sparse_mean_->run(begin, end);
  } else if (mean_ != nullptr) {
    constexpr UpdateConstants kPlain;
    const UpdateArrays only{.gradients = gradient_data_, .weights = weights_};
    for (uint64_t at = begin; at < end; at += kChunkElements)
      effectiveGradient(kPlain, only, at, std::min(kChunkElements, end - at),
                        mean_->mutableData() + at);
  } else if (!copies_.empty()) {
    for (size_t slot = 0; slot < copies_.size() && device_ == nullptr; ++slot)
      copyInto({(*slots_)[slot].as<float>() + begin, end - begin},
               copies_[slot].as<float>() + begin);
    if (device_ != nullptr) readSlots();
  } else {
    update(begin, end);
  }
  // Released to commit(), which must see every part's writes.
  elements_done_.fetch_add(end - begin, std::memory_order_release);
}

// Reads the slots of a device, all at once.
void UpdateJob::readSlots() {
  for (uint32_t slot = 0; slot < copies_.size(); ++slot)
    device_->readSlot(slot, copies_[slot].as<float>());
}

// Sparse slices lie behind all dense elements.
void UpdateJob::update(uint64_t begin, uint64_t end) {
  if (begin < layout_->denseElements()) updateDense(begin, std::min(end, layout_->denseElements()));
  for (size_t i = 0; i < rows_.size(); ++i) {
    const arena::SparseSlice& slice = layout_->sparse()[i];
    const uint64_t first = std::max(begin, slice.offset);
    const uint64_t stop = std::min(end, slice.end());
    if (first >= stop) continue;
    if (missing_)
      arena::copyMissing(*missing_, slice, i, source_->data(), target_->mutableData(), first, stop);
    updateRows(constants_, arrays(), slice, rows_[i], first, stop,
               missing_ ? OtherRows::kThere : OtherRows::kCopied);
  }
}

// Updates moving averages by their own rule, the elements between them by the optimizer's.
void UpdateJob::updateDense(uint64_t begin, uint64_t end) {
  for (auto range = std::ranges::upper_bound(*moving_, begin, {}, &MovingRange::end);
       begin < end && range != moving_->end() && range->begin < end; ++range) {
    if (begin < range->begin) optimize(begin, range->begin);
    begin = std::max(begin, range->begin);
    const uint64_t stop = std::min(end, range->end);
    moveRange(*range, arrays(), constants_.average_slot, begin, stop);
    begin = stop;
  }
  if (begin < end) optimize(begin, end);
}

void UpdateJob::optimize(uint64_t begin, uint64_t end) {
  if (!needsMeasuring()) return updateRange(constants_, arrays(), begin, end);
  DTF_CHECK(elements_measured_.load(std::memory_order_acquire) == elements());
  norms_->update(constants_, arrays(), begin, end);
}

void UpdateJob::runAll() {
  if (needsMeasuring()) measure(0, elements());
  run(0, elements());
}

std::vector<Buffer> UpdateJob::takeCopies() {
  DTF_CHECK(!copies_.empty() && elements_done_.load(std::memory_order_acquire) == elements_);
  return std::move(copies_);
}

arena::Gradient UpdateJob::takeMean() {
  DTF_CHECK(elements_done_.load(std::memory_order_acquire) == elements_);
  gradients_.clear();
  if (sparse_mean_ != nullptr) return std::exchange(sparse_mean_, nullptr)->take();
  DTF_CHECK(mean_ != nullptr);
  return {{mean_->data(), elements_}, std::move(mean_)};
}

void InlineUpdateRunner::start(std::shared_ptr<UpdateJob> job, std::function<void()> done) {
  job->runAll();
  done();
}

ParameterStore::ParameterStore(const cluster::OptimizerSpec& optimizer, uint64_t elements,
                               std::vector<arena::Slice> slices, std::vector<MovingRange> moving,
                               std::vector<arena::SparseSlice> sparse,
                               std::shared_ptr<DeviceArrays> device)
    : optimizer_(optimizer),
      elements_(elements),
      slices_(std::move(slices)),
      moving_(std::make_shared<const std::vector<MovingRange>>(std::move(moving))),
      gradient_layout_(std::make_shared<const arena::GradientLayout>(elements, std::move(sparse))),
      device_(std::move(device)),
      pool_(elements, kUnusedArenasMax),
      optimizer_clock_(optimizer),
      slots_(std::make_shared<std::array<Buffer, kSlotsMax>>()) {
  DTF_CHECK(moving_->empty() || moving_->back().end <= gradient_layout_->denseElements());
  DTF_CHECK(gradient_layout_->sparse().empty() || updatesRows(optimizer));
  if (!gradient_layout_->sparse().empty() && !movesOtherRows(optimizer.kind))
    history_.emplace(gradient_layout_);
  DTF_CHECK(device_ == nullptr ||
            (gradient_layout_->sparse().empty() && !cluster::needsWholeVariables(optimizer.kind)));
  for (uint32_t slot = 0; slot < slotCount() && device_ == nullptr; ++slot) {
    (*slots_)[slot] = Buffer(elements * sizeof(float));
    if (isMovingAverage(optimizer, slot)) continue;
    std::fill_n((*slots_)[slot].as<float>(), elements, initialSlotValue(optimizer, slot));
  }
}

void ParameterStore::initialise(std::span<const float> values) {
  DTF_CHECK(!initialised());
  if (values.size() != elements_) {
    throw Error(ErrorCode::kBadConfig, "initial values of " + std::to_string(values.size()) +
                                           " elements were sent for a shard of " +
                                           std::to_string(elements_) +
                                           "; the chief runs another model than it declared");
  }
  if (device_ != nullptr) initialiseDevice(values);
  const std::shared_ptr<arena::ParameterVersion> first = pool_.acquire(0);
  copyInto(values, first->mutableData());
  for (uint32_t slot = 0; slot < slotCount() && device_ == nullptr; ++slot) {
    if (isMovingAverage(optimizer_, slot)) copyInto(values, (*slots_)[slot].as<float>());
  }
  if (history_) {
    history_->restart();
    first->mark(history_->state());
  }
  current_ = first;
}

void ParameterStore::initialiseDevice(std::span<const float> values) {
  std::vector<Buffer> slots;
  std::vector<std::span<const float>> views;
  for (uint32_t slot = 0; slot < slotCount(); ++slot) {
    if (isMovingAverage(optimizer_, slot)) {
      views.push_back(values);
      continue;
    }
    float* const to = slots.emplace_back(elements_ * sizeof(float)).as<float>();
    std::fill_n(to, elements_, initialSlotValue(optimizer_, slot));
    views.emplace_back(to, elements_);
  }
  writeToDevice(values, views);
}

void ParameterStore::writeToDevice(std::span<const float> values,
                                   std::span<const std::span<const float>> slots) {
  is_torn_ = true;
  device_->write(values, slots);
  is_torn_ = false;
}

std::span<const float> ParameterStore::slot(uint32_t slot) const {
  DTF_CHECK(slot < slotCount() && !updating() && device_ == nullptr);
  return {(*slots_)[slot].as<float>(), elements_};
}

std::shared_ptr<const arena::ParameterVersion> ParameterStore::copyAverages() {
  const uint32_t last = slotCount() - 1;
  if (slotCount() == 0 || !isMovingAverage(optimizer_, last)) return nullptr;
  throwIfTorn();
  const std::shared_ptr<arena::ParameterVersion> copy = pool_.acquire(version());
  if (device_ != nullptr)
    device_->readSlot(last, copy->mutableData());
  else
    copyInto(slot(last), copy->mutableData());
  return copy;
}

void ParameterStore::restore(std::span<const float> values,
                             std::span<const std::span<const float>> slots,
                             const OptimizerClock::State& clock, uint64_t version,
                             std::optional<std::span<const float>> before,
                             const RestoredOwners& owners) {
  DTF_CHECK(!updating());
  if (slots.size() != slotCount()) {
    throw Error(ErrorCode::kBadData, "a checkpoint with " + std::to_string(slots.size()) +
                                         " slots doesn't fit the optimizer '" +
                                         std::string(cluster::optimizerName(optimizer_.kind)) +
                                         "', which has " + std::to_string(slotCount()) +
                                         "; resume with the optimizer that it was written with");
  }
  requireSize("parameters", values.size(), elements_);
  for (uint32_t i = 0; i < slots.size(); ++i) {
    requireSize("slot " + slotName(i), slots[i].size(), elements_);
  }
  if (before) requireSize("previous parameters", before->size(), elements_);
  DTF_CHECK(!before || version > 0);
  std::shared_ptr<const arena::ParameterVersion> restored =
      pool_.take(values, owners.values, version);
  if (device_ != nullptr)
    writeToDevice(values, slots);
  else
    for (uint32_t i = 0; i < slots.size(); ++i) copyInto(slots[i], (*slots_)[i].as<float>());
  unread_ = nullptr;
  optimizer_clock_.restore(clock);
  if (history_) history_->restart();
  previous_ = nullptr;
  current_ = std::move(restored);
  if (before && device_ == nullptr) previous_ = pool_.take(*before, owners.before, version - 1);
}

std::shared_ptr<UpdateJob> ParameterStore::jobOf(std::vector<arena::Gradient> gradients) const {
  DTF_CHECK(initialised() && !gradients.empty());
  auto job = std::make_shared<UpdateJob>();
  for (const arena::Gradient& gradient : gradients) {
    DTF_CHECK(gradient.values.size() == gradient_layout_->elementsOf(gradient.row_counts));
    job->gradient_data_.push_back(gradient.values.data());
    job->weights_.push_back(gradient.weight);
  }
  job->elements_ = elements_;
  job->layout_ = gradient_layout_;
  job->gradients_ = std::move(gradients);
  return job;
}

std::shared_ptr<UpdateJob> ParameterStore::prepareApply(std::vector<arena::Gradient> gradients) {
  DTF_CHECK(running_ == nullptr && device_ == nullptr);
  std::shared_ptr<UpdateJob> job = jobOf(std::move(gradients));
  job->constants_ = optimizer_clock_.next();
  job->source_ = current_;
  job->target_ = pool_.acquire(current_->version() + 1);
  if (history_) job->missing_ = history_->missingSince(job->target_->markBefore());
  job->slots_ = slots_;
  job->moving_ = moving_;
  job->rows_.resize(gradient_layout_->sparse().size());
  for (size_t i = 0; i < job->rows_.size(); ++i)
    for (const arena::Gradient& gradient : job->gradients_)
      job->rows_[i].push_back(gradient_layout_->rows(gradient, i));
  if (cluster::needsWholeVariables(optimizer_.kind)) {
    job->norms_ = std::make_unique<SliceNorms>(slices_, elements_);
  }
  running_ = job;
  return job;
}

std::shared_ptr<UpdateJob> ParameterStore::prepareCopy() const {
  DTF_CHECK(initialised() && !updating() && slotCount() > 0);
  auto job = std::make_shared<UpdateJob>();
  job->elements_ = elements_;
  job->slots_ = slots_;
  job->device_ = device_;
  for (uint32_t slot = 0; slot < slotCount(); ++slot)
    job->copies_.emplace_back(elements_ * sizeof(float));
  return job;
}

ParameterStore::Image ParameterStore::newest() const {
  DTF_CHECK(initialised() && device_ == nullptr);
  DTF_CHECK(!updating() || running_->elements_done_.load(std::memory_order_acquire) == elements_);
  struct Owner {
    std::shared_ptr<const arena::ParameterVersion> parameters;
    std::shared_ptr<const arena::ParameterVersion> before;
    std::shared_ptr<const std::array<Buffer, kSlotsMax>> slots;
  };
  const auto owner = std::make_shared<Owner>(
      Owner{updating() ? running_->target_ : current_, updating() ? current_ : previous_, slots_});
  Image image{owner->parameters->version(), optimizer_clock_.state(), {}, owner};
  image.arenas.emplace_back(owner->parameters->data(), elements_);
  for (uint32_t slot = 0; slot < slotCount(); ++slot)
    image.arenas.emplace_back((*slots_)[slot].as<float>(), elements_);
  if (owner->before) image.arenas.emplace_back(owner->before->data(), elements_);
  return image;
}

std::shared_ptr<UpdateJob> ParameterStore::prepareMean(std::vector<arena::Gradient> gradients) {
  DTF_CHECK(gradients.size() > 1);
  std::shared_ptr<UpdateJob> job = jobOf(std::move(gradients));
  if (gradient_layout_->sparse().empty())
    job->mean_ = pool_.acquire(0);
  else
    (job->sparse_mean_ = unusedMean())->begin(job->gradients_);
  return job;
}

arena::Gradient ParameterStore::copyOf(const arena::Gradient& gradient) {
  DTF_CHECK(gradient.values.size() == elements_ && gradient.row_counts.empty());
  const std::shared_ptr<arena::ParameterVersion> copy = pool_.acquire(0);
  std::memcpy(copy->mutableData(), gradient.values.data(), gradient.values.size_bytes());
  return {{copy->data(), elements_}, copy, {}, gradient.weight};
}

// Returns a mean that no job uses: a job that was dropped keeps its own.
std::shared_ptr<SparseMean> ParameterStore::unusedMean() {
  if (sparse_mean_ == nullptr || sparse_mean_.use_count() > 1)
    sparse_mean_ = std::make_shared<SparseMean>(gradient_layout_);
  return sparse_mean_;
}

void ParameterStore::commit(const std::shared_ptr<UpdateJob>& job) {
  DTF_CHECK(job != nullptr && job == running_);
  DTF_CHECK(job->elements_done_.load(std::memory_order_acquire) == elements_);
  if (history_) {
    history_->add(job->gradients_);
    job->target_->mark(history_->state());
  }
  previous_ = std::move(current_);
  current_ = std::move(job->target_);
  job->source_ = nullptr;
  job->gradients_.clear();
  running_ = nullptr;
}

std::unique_ptr<ParameterStore> makeStore(const arena::ModelDeclaration& declaration,
                                          uint32_t ps_task, std::shared_ptr<DeviceArrays> device) {
  const arena::ShardLayout& shard = declaration.layout.shards.at(ps_task);
  return std::make_unique<ParameterStore>(declaration.optimizer, shard.elements, shard.slices,
                                          movingRanges(declaration.layout, ps_task),
                                          arena::sparseSlices(declaration.layout, ps_task),
                                          std::move(device));
}

const std::shared_ptr<const arena::ParameterVersion>& ParameterStore::readable() {
  throwIfTorn();
  if (unread_ != nullptr) device_->readParameters(unread_->mutableData());
  unread_ = nullptr;
  return current_;
}

void ParameterStore::throwIfTorn() const {
  if (is_torn_)
    throw Error(ErrorCode::kUnavailable,
                "the device that keeps the parameters failed while they were changed: they are "
                "lost, go on from a checkpoint");
}

void ParameterStore::updateOnDevice(const std::vector<arena::Gradient>& gradients) {
  DTF_CHECK(initialised() && gradients.size() == 1);
  throwIfTorn();
  std::shared_ptr<arena::ParameterVersion> next = pool_.acquire(version() + 1);
  is_torn_ = true;
  device_->update(optimizer_clock_.next());
  is_torn_ = false;
  unread_ = std::move(next);
  current_ = unread_;
}

void ParameterStore::apply(std::vector<arena::Gradient> gradients) {
  if (device_ != nullptr) return updateOnDevice(gradients);
  const std::shared_ptr<UpdateJob> job = prepareApply(std::move(gradients));
  job->runAll();
  commit(job);
}

}  // namespace dtf::optimizer
