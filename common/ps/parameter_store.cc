#include "common/ps/parameter_store.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/base/planted_bug.h"

namespace dtf::ps {

namespace {

// Current, previous and next are in turn: what a steady state recycles. More are in use only while
// replies are read.
constexpr uint32_t kUnusedArenasMax = 3;

}  // namespace

void UpdateJob::run(uint64_t begin, uint64_t end) {
  DTF_CHECK(begin <= end && end <= elements());
  UpdateArrays arrays;
  arrays.old_parameters = source_->data();
  arrays.new_parameters = target_->mutableData();
  for (uint32_t slot = 0; slot < kSlotsMax; ++slot) {
    arrays.slots[slot] = (*slots_)[slot].as<float>();
  }
  arrays.gradients = gradient_data_;
  updateRange(constants_, arrays, begin, end);
  // Released to commit(), which must see every part's writes.
  elements_done_.fetch_add(end - begin, std::memory_order_release);
}

void InlineUpdateRunner::start(std::shared_ptr<UpdateJob> job, std::function<void()> done) {
  job->run(0, job->elements());
  done();
}

ParameterStore::ParameterStore(const cluster::OptimizerSpec& optimizer, uint64_t elements)
    : elements_(elements),
      pool_(elements, kUnusedArenasMax),
      optimizer_clock_(optimizer),
      slots_(std::make_shared<std::array<Buffer, kSlotsMax>>()) {
  for (uint32_t slot = 0; slot < slotCount(optimizer.kind); ++slot) {
    (*slots_)[slot] = Buffer(elements * sizeof(float));
    std::fill_n((*slots_)[slot].as<float>(), elements, initialSlotValue(optimizer, slot));
  }
}

void ParameterStore::initialise(std::span<const float> values) {
  DTF_CHECK(!initialised() || plantedBug(Bug::kInitialiseOverwrites));
  if (values.size() != elements_) {
    throw Error(ErrorCode::kBadConfig, "initial values of " + std::to_string(values.size()) +
                                           " elements were sent for a shard of " +
                                           std::to_string(elements_) +
                                           "; the chief runs another model than it declared");
  }
  const std::shared_ptr<Snapshot> first = pool_.acquire(0);
  if (!values.empty()) std::memcpy(first->mutableData(), values.data(), values.size_bytes());
  current_ = first;
}

std::shared_ptr<UpdateJob> ParameterStore::prepareApply(std::vector<Gradient> gradients) {
  DTF_CHECK(initialised() && running_ == nullptr && !gradients.empty());
  auto job = std::make_shared<UpdateJob>();
  for (const Gradient& gradient : gradients) {
    DTF_CHECK(gradient.values.size() == elements_);
    job->gradient_data_.push_back(gradient.values.data());
  }
  job->elements_ = elements_;
  job->gradients_ = std::move(gradients);
  job->constants_ = optimizer_clock_.next();
  job->source_ = current_;
  job->target_ = pool_.acquire(current_->version() + 1);
  job->slots_ = slots_;
  running_ = job;
  return job;
}

void ParameterStore::commit(const std::shared_ptr<UpdateJob>& job) {
  DTF_CHECK(job != nullptr && job == running_);
  DTF_CHECK(job->elements_done_.load(std::memory_order_acquire) == elements_);
  previous_ = std::move(current_);
  current_ = std::move(job->target_);
  job->source_ = nullptr;
  job->gradients_.clear();
  running_ = nullptr;
}

void ParameterStore::apply(std::vector<Gradient> gradients) {
  const std::shared_ptr<UpdateJob> job = prepareApply(std::move(gradients));
  job->run(0, elements_);
  commit(job);
}

}  // namespace dtf::ps
