#include "common/data/growing_block.h"

#include <cstring>
#include <utility>

#include "common/base/check.h"

namespace dtf::data {

namespace {

constexpr size_t kWrittenAtOnce = size_t{1} << 20;

}  // namespace

void GrowingBlock::append(const void* bytes, size_t count) {
  held_.append(static_cast<const char*>(bytes), count);
  size_ += count;
  if (file_ ? held_.size() >= kWrittenAtOnce : size_ > resident_max_) flush();
}

void GrowingBlock::flush() {
  DTF_CHECK(size_ > resident_max_);
  if (!file_) {
    file_.emplace();
    file_->append(held_);
    held_ = std::string();  // frees its memory
    held_.reserve(2 * kWrittenAtOnce);
    return;
  }
  file_->append(held_);
  held_.clear();
}

ByteBlock GrowingBlock::finish() {
  const size_t size = std::exchange(size_, 0);
  const std::string held = std::exchange(held_, {});
  if (!file_) {
    DTF_CHECK(held.size() == size);
    ByteBlock block(size, size);
    std::memcpy(block.data(), held.data(), size);
    return block;
  }
  file_->append(held);
  ByteBlock block(*file_, size);
  file_.reset();
  return block;
}

}  // namespace dtf::data
