#pragma once

// A bound on the bytes that many hold together, wherever they hold them.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "common/base/mutex.h"

namespace dtf {

// Owns: the count. Shared by those who hold a part of it, which may outlive whoever made it.
// Threads: thread-safe.
// Blocks: never.
class ByteBudget : public std::enable_shared_from_this<ByteBudget> {
 public:
  // Bytes of the budget, given back by the end of this. Move-only; may end in any thread.
  class Share {
   public:
    Share() = default;  // of nothing
    ~Share() { giveBack(); }
    Share(Share&& other) noexcept
        : budget_(std::move(other.budget_)), bytes_(std::exchange(other.bytes_, 0)) {}
    Share& operator=(Share&& other) noexcept {
      giveBack();
      budget_ = std::move(other.budget_);
      bytes_ = std::exchange(other.bytes_, 0);
      return *this;
    }
    uint64_t bytes() const { return bytes_; }

   private:
    friend class ByteBudget;
    Share(std::shared_ptr<ByteBudget> budget, uint64_t bytes)
        : budget_(std::move(budget)), bytes_(bytes) {}
    void giveBack() noexcept;
    std::shared_ptr<ByteBudget> budget_;
    uint64_t bytes_ = 0;
  };

  // `owner`: for messages, "worker/1".
  static std::shared_ptr<ByteBudget> create(uint64_t bytes_max, std::string owner);

  // nullopt: there is no room for so many.
  std::optional<Share> tryTake(uint64_t bytes);
  // `what` needs them. Errors: kUnavailable that names it and says what is taken.
  Share take(uint64_t bytes, const std::string& what);
  // Beyond the bound, too, unless it has been passed before: for what is received, and can be
  // refused in words only when it is there. So the bound is passed by one at most.
  std::optional<Share> takeUnlessPassed(uint64_t bytes);
  // For whoever is to keep such a Share. Errors: as take(), when the bound has been passed.
  void refuseIfPassed(uint64_t bytes, const std::string& what) const;
  // Why there is no room for `what`, for those who can't throw.
  std::string refusal(uint64_t bytes, const std::string& what) const;

  uint64_t taken() const;
  uint64_t bytesMax() const { return bytes_max_; }

 private:
  ByteBudget(uint64_t bytes_max, std::string owner);

  const uint64_t bytes_max_;
  const std::string owner_;
  mutable Mutex mutex_;
  uint64_t taken_ DTF_GUARDED_BY(mutex_) = 0;
};

}  // namespace dtf
