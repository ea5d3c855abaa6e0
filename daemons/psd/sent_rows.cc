#include "daemons/psd/sent_rows.h"

#include <algorithm>

#include "common/ps/narrow_gradient.h"

namespace dtf::psd {

wire::ArenaPart SentRows::of(const ps::Snapshot& parameters, const ps::RowSet& rows, bool narrows) {
  const uint64_t elements = alone_.value().elementsOf(rows.counts);
  const uint64_t wide_bytes = elements * sizeof(float);
  if (elements == 0) return {};
  if (!narrows) {
    const std::shared_ptr<Buffer> sent = buffers_.take(wide_bytes, roomFor(wide_bytes));
    ps::gatherRows(layout_, rows, parameters.data(), sent->as<float>());
    return {{sent->data(), wide_bytes}, sent};
  }
  if (wide_.bytes() < wide_bytes) wide_ = Buffer(roomFor(wide_bytes));
  ps::gatherRows(layout_, rows, parameters.data(), wide_.as<float>());
  const uint64_t bytes = ps::narrowRowsBytes(*alone_, rows.counts);
  const std::shared_ptr<Buffer> sent = buffers_.take(bytes, roomFor(bytes));
  ps::narrowRows(*alone_, {{wide_.as<float>(), elements}, nullptr, rows.counts}, sent->data());
  return {{sent->data(), bytes}, sent};
}

// Also for batches that look up more, but no more than there is.
uint64_t SentRows::roomFor(uint64_t bytes) const {
  return std::min(2 * bytes, alone_->elementsMax() * sizeof(float));
}

}  // namespace dtf::psd
