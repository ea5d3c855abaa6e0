#include "common/host/encoded_parameters.h"

#include <span>

#include "common/base/trace.h"

namespace dtf::host {

wire::ArenaPart EncodedParameters::of(
    const std::shared_ptr<const arena::ParameterVersion>& parameters,
    const arena::ElementCodec& codec) {
  const uint64_t bytes = codec.bytes();
  if (codec.isIdentity())
    return {std::as_bytes(std::span(parameters->data(), codec.elements())), parameters};
  const bool is_it =
      current_ != nullptr && current_bytes_ == bytes && current_codec_ == codec.name();
  if (is_it && newest_.lock() == parameters) return {{current_->data(), bytes}, current_};
  const trace::Span span("encode parameters");
  current_ = nullptr;
  current_ = buffers_.take(bytes);
  current_bytes_ = bytes;
  current_codec_ = codec.name();
  codec.encode({.values = parameters->data()}, {0, codec.elements()}, current_->data());
  newest_ = parameters;
  return {{current_->data(), bytes}, current_};
}

}  // namespace dtf::host
