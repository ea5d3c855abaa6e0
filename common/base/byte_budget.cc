#include "common/base/byte_budget.h"

#include <algorithm>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/base/text.h"

namespace dtf {

std::shared_ptr<ByteBudget> ByteBudget::create(uint64_t bytes_max, std::string owner) {
  return std::shared_ptr<ByteBudget>(new ByteBudget(bytes_max, std::move(owner)));
}

ByteBudget::ByteBudget(uint64_t bytes_max, std::string owner)
    : bytes_max_(bytes_max), owner_(std::move(owner)) {
  DTF_CHECK(!owner_.empty());
}

std::optional<ByteBudget::Share> ByteBudget::tryTake(uint64_t bytes) {
  {
    MutexLock lock(mutex_);
    const uint64_t left = bytes_max_ - std::min(bytes_max_, taken_);
    if (bytes > left) return std::nullopt;
    taken_ += bytes;
  }
  return Share(shared_from_this(), bytes);
}

ByteBudget::Share ByteBudget::take(uint64_t bytes, const std::string& what) {
  if (std::optional<Share> share = tryTake(bytes)) return *std::move(share);
  throw Error(ErrorCode::kUnavailable, refusal(bytes, what));
}

std::optional<ByteBudget::Share> ByteBudget::takeUnlessPassed(uint64_t bytes) {
  {
    MutexLock lock(mutex_);
    if (taken_ > bytes_max_) return std::nullopt;
    DTF_CHECK(bytes <= UINT64_MAX - taken_);
    taken_ += bytes;
  }
  return Share(shared_from_this(), bytes);
}

void ByteBudget::refuseIfPassed(uint64_t bytes, const std::string& what) const {
  if (taken() > bytes_max_) throw Error(ErrorCode::kUnavailable, refusal(bytes, what));
}

std::string ByteBudget::refusal(uint64_t bytes, const std::string& what) const {
  return owner_ + " has no room for " + what + ", which takes " + bytesText(bytes) + ": " +
         bytesText(taken()) + " of " + bytesText(bytes_max_) + " are taken; close other sessions";
}

uint64_t ByteBudget::taken() const {
  MutexLock lock(mutex_);
  return taken_;
}

void ByteBudget::Share::giveBack() noexcept {
  if (budget_ == nullptr) return;
  {
    MutexLock lock(budget_->mutex_);
    DTF_CHECK(budget_->taken_ >= bytes_);
    budget_->taken_ -= bytes_;
  }
  budget_ = nullptr;
}

}  // namespace dtf
