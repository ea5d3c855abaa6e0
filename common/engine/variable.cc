#include "common/engine/variable.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/engine/replica_barrier.h"

namespace dtf::engine {

Variable::Version::Version(const Variable& variable)
    : share(variable.budget_->take(variable.spec_.bytes(),
                                   "a value of the variable '" + variable.name_ + "'")),
      tensor(variable.spec_.dtype, variable.spec_.shape) {}

Variable::Variable(std::string name, graph::TensorSpec spec, std::shared_ptr<ByteBudget> budget,
                   Incarnation process)
    : name_(std::move(name)),
      spec_(std::move(spec)),
      budget_(std::move(budget)),
      process_(process) {
  DTF_CHECK(budget_ != nullptr);
}

Variable::~Variable() = default;

bool Variable::hasValue() const {
  MutexLock lock(mutex_);
  return current_ != nullptr;
}

// The release at the end of a hold pairs with the check in change(), which then sees all reads
// done.
Variable::Value Variable::hold(const std::shared_ptr<Version>& version) {
  version->holders.fetch_add(1, std::memory_order_relaxed);
  return {&version->tensor,
          [version](const Tensor*) { version->holders.fetch_sub(1, std::memory_order_release); }};
}

Variable::Value Variable::read() const {
  MutexLock lock(mutex_);
  DTF_CHECK_MSG(!changing_, name_);
  if (current_ != nullptr) return hold(current_);
  throw withoutValue();
}

Error Variable::withoutValue() const {
  return {ErrorCode::kBadConfig,
          "the variable '" + name_ +
              "' has no value yet: initialize the variables of the session first, restore a "
              "checkpoint, or set it"};
}

void Variable::set(std::span<const std::byte> value) {
  auto version = std::make_shared<Version>(*this);
  DTF_CHECK(value.size() == version->tensor.bytes());
  std::copy(value.begin(), value.end(), version->tensor.data());
  {
    MutexLock lock(mutex_);
    current_.swap(version);  // the old value is freed after the lock is released
  }
  resetReplicas();
}

void Variable::clear() {
  std::shared_ptr<Version> last;  // freed after the lock is released
  {
    MutexLock lock(mutex_);
    current_.swap(last);
  }
  resetReplicas();
}

void Variable::resetReplicas() {
  GradientAccumulator* accumulator = nullptr;
  ReplicaBarrier* barrier = nullptr;
  {
    MutexLock lock(mutex_);
    accumulator = accumulator_.get();
    barrier = barrier_.get();
  }
  if (accumulator != nullptr) accumulator->clear();
  if (barrier != nullptr) barrier->reset();
}

GradientAccumulator& Variable::accumulator() {
  MutexLock lock(mutex_);
  if (accumulator_ == nullptr) accumulator_ = std::make_unique<GradientAccumulator>(name_, budget_);
  return *accumulator_;
}

ReplicaBarrier& Variable::barrier() {
  MutexLock lock(mutex_);
  if (barrier_ == nullptr) barrier_ = std::make_unique<ReplicaBarrier>(name_, budget_, process_);
  return *barrier_;
}

Variable::Value Variable::change(bool needs_value, const Compute& compute) {
  std::shared_ptr<Version> before, after;
  Value value;
  {
    MutexLock lock(mutex_);
    DTF_CHECK_MSG(!changing_, name_);
    before = current_;
    if (before != nullptr && before->holders.load(std::memory_order_acquire) == 0) after = before;
    changing_ = true;
  }
  try {
    if (before == nullptr && needs_value) throw withoutValue();
    if (after == nullptr) after = std::make_shared<Version>(*this);
    compute(before == nullptr ? nullptr : before->tensor.data(), after->tensor.data());
    value = hold(after);
  } catch (...) {
    MutexLock lock(mutex_);
    changing_ = false;
    throw;
  }
  MutexLock lock(mutex_);
  changing_ = false;
  if (current_ == before) current_ = std::move(after);
  return value;
}

int64_t counterValue(const Variable& counter) {
  const Variable::Value value = counter.read();
  DTF_CHECK(value->bytes() == sizeof(int64_t));
  return value->as<int64_t>()[0];
}

}  // namespace dtf::engine
