#include "common/host/changed_parameters.h"

#include <utility>

#include "common/base/check.h"
#include "common/base/ids.h"
#include "common/base/trace.h"

namespace dtf::host {

// A base of an earlier process has another number: its worker would apply a change to the wrong
// values otherwise.
ChangedParameters::ChangedParameters() : next_number_(Incarnation::ofNow().value) {}

ChangedParameters::BaseRef ChangedParameters::makeBase(Base base) {
  base.number = ++next_number_;
  return std::make_shared<const Base>(std::move(base));
}

uint64_t ChangedParameters::sentWhole(uint32_t rank, const Version& version) {
  const auto& [parameters, epoch] = version;
  BaseRef base = whole_.lock();
  if (base == nullptr || whole_version_.lock() != parameters || base->epoch != epoch) {
    base = makeBase({.epoch = epoch,
                     .elements = parameters->elements(),
                     .values = parameters->data(),
                     .owner = parameters});
    whole_ = base;
    whole_version_ = parameters;
  }
  workers_[rank].sent = base;
  return base->number;
}

std::optional<ChangedParameters::Sent> ChangedParameters::changeFor(
    uint32_t rank, uint64_t base, const Version& version, const arena::ChangeCodec& codec) {
  Worker& worker = workers_[rank];
  if (worker.sent != nullptr && worker.sent->number == base) worker.held = worker.sent;
  const bool is_known = base != 0 && worker.held != nullptr && worker.held->number == base &&
                        worker.held->epoch == version.epoch &&
                        worker.held->elements >= codec.elements();
  worker.sent = nullptr;
  if (!is_known) {
    worker.held = nullptr;
    return std::nullopt;
  }
  const Change& change = changeOf(worker.held, version, codec);
  worker.sent = change.to;
  return Sent{{{change.encoded->data(), change.bytes}, change.encoded}, change.to->number};
}

const ChangedParameters::Change& ChangedParameters::changeOf(const BaseRef& from,
                                                             const Version& version,
                                                             const arena::ChangeCodec& codec) {
  const auto& [parameters, epoch] = version;
  DTF_CHECK(parameters->elements() >= codec.elements());
  const uint64_t bytes = codec.bytes();
  if (changed_version_.lock() != parameters) changes_.clear();
  changed_version_ = parameters;
  for (const Change& change : changes_)
    if (change.from == from && change.bytes == bytes) return change;
  const trace::Span span("encode parameters");
  const std::shared_ptr<Buffer> values = values_.take(codec.elements() * sizeof(float));
  std::shared_ptr<Buffer> encoded = encoded_.take(bytes);
  codec.encodeChange(parameters->data(), from->values, encoded->data(), values->as<float>());
  BaseRef to = makeBase({.epoch = epoch,
                         .elements = codec.elements(),
                         .values = values->as<float>(),
                         .owner = values});
  changes_.push_back({from, std::move(to), bytes, std::move(encoded)});
  return changes_.back();
}

}  // namespace dtf::host
