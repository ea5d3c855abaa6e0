#pragma once

// A bound on the bytes that several owners hold together.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "common/base/mutex.h"

namespace dtf {

// Owns: the count. Shared by the holders of its shares, which may outlive its creator.
// Threads: thread-safe.
// Blocks: never.
class ByteBudget : public std::enable_shared_from_this<ByteBudget> {
 public:
  // Some bytes of the budget; the destructor gives them back. Move-only; may be destroyed in any
  // thread.
  class Share {
   public:
    Share() = default;  // an empty share
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

  // `owner`: the task named in messages, "worker/1".
  static std::shared_ptr<ByteBudget> create(uint64_t bytes_max, std::string owner);

  // Returns nullopt if `bytes` do not fit.
  std::optional<Share> tryTake(uint64_t bytes);
  // Takes `bytes` for `what`. Errors: kUnavailable, with `what` and the bytes in use.
  Share take(uint64_t bytes, const std::string& what);
  // Takes `bytes` even beyond the bound; returns nullopt if the bound was passed before. For
  // messages, which can be rejected with a reason only after they were received. So at most one
  // message passes the bound.
  std::optional<Share> takeUnlessPassed(uint64_t bytes);
  // Checks a share of takeUnlessPassed() before it is kept. Errors: as take(), if the bound is
  // passed.
  void refuseIfPassed(uint64_t bytes, const std::string& what) const;
  // Returns the text of the error of take(), for callers that can't throw.
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
