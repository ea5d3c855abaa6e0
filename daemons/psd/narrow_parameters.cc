#include "daemons/psd/narrow_parameters.h"

#include "common/base/trace.h"

namespace dtf::psd {

std::shared_ptr<const Buffer> NarrowParameters::of(
    const std::shared_ptr<const ps::Snapshot>& parameters, const ps::NarrowLayout& layout) {
  const bool is_it = current_ != nullptr && current_bytes_ == layout.bytes();
  if (is_it && newest_.lock() == parameters) return current_;
  const trace::Span span("round parameters");
  current_ = nullptr;
  current_ = buffers_.take(layout.bytes());
  current_bytes_ = layout.bytes();
  layout.narrow(parameters->data(), 0, layout.elements(), current_->data());
  newest_ = parameters;
  return current_;
}

}  // namespace dtf::psd
