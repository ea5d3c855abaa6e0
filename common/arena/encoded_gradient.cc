#include "common/arena/encoded_gradient.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"

namespace dtf::arena {

EncodedGradient::EncodedGradient(const Codec& codec) : codec_(codec) {
  if (!codec.hasState()) return;
  residual_ = Buffer(codec.stateElements() * sizeof(float));
  std::fill_n(residual_.as<float>(), codec.stateElements(), 0.0F);
}

void EncodedGradient::follow(uint64_t epoch) {
  if (std::exchange(epoch_, epoch) == epoch || !codec_.hasState()) return;
  std::fill_n(residual_.as<float>(), codec_.stateElements(), 0.0F);
}

// Makes bytes() those of the gradient, or room for them.
void EncodedGradient::take(Gradient gradient) {
  gradient_ = std::move(gradient);
  if (codec_.isIdentity()) {
    bytes_ = std::as_bytes(gradient_.values);
    owner_ = gradient_.owner;
    return;
  }
  const uint64_t bytes = codec_.bytes(gradient_.row_counts);
  if (buffer_ == nullptr || buffer_->bytes() < bytes) {
    buffer_ = std::make_shared<Buffer>(bytes);
    owner_ = buffer_;
  }
  bytes_ = {buffer_->data(), bytes};
}

void EncodedGradient::write(Gradient gradient) {
  take(std::move(gradient));
  if (codec_.isIdentity() || bytes_.empty()) return;
  codec_.encode(input(), {0, gradient_.values.size()}, buffer_->data());
}

void EncodedGradient::begin(Gradient gradient) {
  DTF_CHECK(gradient.row_counts.empty());
  take(std::move(gradient));
  written_ = final_bytes_ = 0;
}

// Final bytes may be on their way: they aren't written again.
uint64_t EncodedGradient::writeUpTo(uint64_t elements) {
  DTF_CHECK(elements >= written_);
  if (elements == written_) return final_bytes_;
  final_bytes_ = codec_.isIdentity()
                     ? elements * sizeof(float)
                     : codec_.encode(input(), {written_, elements}, buffer_->data());
  written_ = elements;
  return final_bytes_;
}

}  // namespace dtf::arena
