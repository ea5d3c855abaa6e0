#include "daemons/psd/narrow_parameters.h"

#include "common/base/trace.h"

namespace dtf::psd {

std::shared_ptr<const Buffer> NarrowParameters::of(
    const std::shared_ptr<const ps::Snapshot>& parameters, const ps::NarrowLayout& layout) {
  const bool is_it = current_ != nullptr && current_->bytes() == layout.bytes();
  if (is_it && newest_.lock() == parameters) return current_;
  const trace::Span span("round parameters");
  current_ = nullptr;
  current_ = freeBuffer(layout.bytes());
  layout.narrow(parameters->data(), 0, layout.elements(), current_->data());
  newest_ = parameters;
  return current_;
}

// One that nobody reads.
std::shared_ptr<Buffer> NarrowParameters::freeBuffer(uint64_t bytes) {
  for (std::shared_ptr<Buffer>& buffer : buffers_) {
    if (buffer != nullptr && buffer.use_count() > 1) continue;
    if (buffer == nullptr || buffer->bytes() != bytes) buffer = std::make_shared<Buffer>(bytes);
    return buffer;
  }
  return std::make_shared<Buffer>(bytes);
}

}  // namespace dtf::psd
