#include "common/host/changed_parameters.h"

#include <utility>

#include "common/base/check.h"
#include "common/base/ids.h"
#include "common/base/trace.h"

namespace dtf::host {

// A base of an earlier process has another number: its worker would apply a change to the wrong
// values otherwise.
ChangedParameters::ChangedParameters() : next_number_(Incarnation::ofNow().value) {}

ChangedParameters::BaseRef ChangedParameters::makeBase(uint64_t elements, const float* values,
                                                       std::shared_ptr<const void> owner) {
  return std::make_shared<const Base>(Base{++next_number_, elements, values, std::move(owner)});
}

uint64_t ChangedParameters::sentWhole(
    uint32_t rank, const std::shared_ptr<const arena::ParameterVersion>& parameters) {
  BaseRef base = whole_.lock();
  if (base == nullptr || whole_version_.lock() != parameters) {
    base = makeBase(parameters->elements(), parameters->data(), parameters);
    whole_ = base;
    whole_version_ = parameters;
  }
  Worker& worker = workers_[rank];
  worker.sent = base;
  return base->number;
}

std::optional<ChangedParameters::Sent> ChangedParameters::changeFor(
    uint32_t rank, uint64_t base, const std::shared_ptr<const arena::ParameterVersion>& parameters,
    const arena::ChangeCodec& codec) {
  Worker& worker = workers_[rank];
  if (worker.sent != nullptr && worker.sent->number == base) worker.held = worker.sent;
  const bool is_known = base != 0 && worker.held != nullptr && worker.held->number == base &&
                        worker.held->elements >= codec.elements();
  worker.sent = nullptr;
  if (!is_known) {
    worker.held = nullptr;
    return std::nullopt;
  }
  if (last_.from != worker.held || last_.parameters.lock() != parameters ||
      last_.bytes != codec.bytes())
    encode(worker.held, parameters, codec);
  worker.sent = last_.to;
  return Sent{{{last_.encoded->data(), last_.bytes}, last_.encoded}, last_.to->number};
}

void ChangedParameters::encode(const BaseRef& from,
                               const std::shared_ptr<const arena::ParameterVersion>& parameters,
                               const arena::ChangeCodec& codec) {
  const trace::Span span("encode parameters");
  DTF_CHECK(parameters->elements() >= codec.elements());
  const uint64_t bytes = codec.bytes();
  const std::shared_ptr<Buffer> values = values_.take(codec.elements() * sizeof(float));
  last_ = {};  // its buffer may be free now
  std::shared_ptr<Buffer> encoded = encoded_.take(bytes);
  codec.encodeChange(parameters->data(), from->values, encoded->data(), values->as<float>());
  last_ = {from, makeBase(codec.elements(), values->as<float>(), values), parameters, bytes,
           std::move(encoded)};
}

}  // namespace dtf::host
