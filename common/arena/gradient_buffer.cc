#include "common/arena/gradient_buffer.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "common/base/check.h"

namespace dtf::arena {

GradientBuffer::GradientBuffer(GradientLayout layout)
    : layout_(std::move(layout)), row_counts_(layout_.sparse().size()) {
  buffer_ = std::make_shared<Buffer>(elements() * sizeof(float));
}

float* GradientBuffer::values() {
  return buffer_->as<float>();
}

void GradientBuffer::setRows(std::span<const uint32_t> row_counts) {
  DTF_CHECK(!layout_.countFault(row_counts));
  row_counts_.assign(row_counts.begin(), row_counts.end());
  const uint64_t needed = elements() * sizeof(float);
  if (needed > buffer_->bytes()) {
    // Half as large again, so that batches of growing size don't each make a new one.
    const uint64_t most = layout_.elementsMax() * sizeof(float);
    auto larger = std::make_shared<Buffer>(std::min(most, std::max(needed, needed + needed / 2)));
    if (layout_.denseElements() > 0)
      std::memcpy(larger->data(), buffer_->data(), layout_.denseElements() * sizeof(float));
    buffer_ = std::move(larger);
  }
  if (const uint64_t last = layout_.rowsAt(row_counts_, row_counts_.size()); last < elements())
    values()[last] = 0;
}

void GradientBuffer::moveToSharedMemory() {
  DTF_CHECK(layout_.sparse().empty());
  if (buffer_->bytes() == 0 || buffer_->sharedMemory() != nullptr) return;
  auto shared = std::make_shared<Buffer>(Buffer::shared(buffer_->bytes()));
  std::memcpy(shared->data(), buffer_->data(), buffer_->bytes());
  buffer_ = std::move(shared);
}

Gradient GradientBuffer::share() const {
  return {{buffer_->as<float>(), elements()}, buffer_, row_counts_};
}

Gradient GradientBuffer::copy() const {
  const uint64_t bytes = elements() * sizeof(float);
  auto copied = std::make_shared<Buffer>(bytes);
  if (bytes > 0) std::memcpy(copied->data(), buffer_->data(), bytes);
  return {{copied->as<float>(), elements()}, copied, row_counts_};
}

}  // namespace dtf::arena
