#include "common/engine/byte_budget.h"

#include "common/base/check.h"
#include "common/base/error.h"

namespace dtf::engine {

void ByteBudget::take(uint64_t bytes, const std::string& what) {
  MutexLock lock(mutex_);
  DTF_CHECK(taken_ <= bytes_max_);
  if (bytes > bytes_max_ - taken_)
    throw Error(ErrorCode::kUnavailable,
                "no room for " + what + ", which takes " + std::to_string(bytes) + " bytes: " +
                    std::to_string(taken_) + " of " + std::to_string(bytes_max_) + " are taken");
  taken_ += bytes;
}

void ByteBudget::giveBack(uint64_t bytes) {
  MutexLock lock(mutex_);
  DTF_CHECK(bytes <= taken_);
  taken_ -= bytes;
}

uint64_t ByteBudget::taken() const {
  MutexLock lock(mutex_);
  return taken_;
}

}  // namespace dtf::engine
