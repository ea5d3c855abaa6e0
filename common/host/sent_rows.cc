#include "common/host/sent_rows.h"

#include <algorithm>

#include "common/base/check.h"

namespace dtf::host {

wire::ArenaPart SentRows::of(const arena::ParameterVersion& parameters, const arena::RowSet& rows) {
  DTF_CHECK(alone_ != nullptr);
  const uint64_t elements = alone_->elements(rows.counts);
  if (elements == 0) return {};
  const uint64_t bytes = alone_->bytes(rows.counts);
  const std::shared_ptr<Buffer> sent = buffers_.take(bytes, roomFor(bytes));
  if (alone_->isIdentity()) {
    arena::gatherRows(layout_, rows, parameters.data(), sent->as<float>());
    return {{sent->data(), bytes}, sent};
  }
  const uint64_t gathered = elements * sizeof(float);
  if (gathered_.bytes() < gathered) gathered_ = Buffer(roomFor(gathered));
  arena::gatherRows(layout_, rows, parameters.data(), gathered_.as<float>());
  alone_->encode({gathered_.as<float>(), rows.counts}, {0, elements}, sent->data());
  return {{sent->data(), bytes}, sent};
}

// Leaves room for later batches that look up more rows, up to all rows of the shard.
uint64_t SentRows::roomFor(uint64_t bytes) const {
  return std::min(2 * bytes, alone_->layout().elementsMax() * sizeof(float));
}

}  // namespace dtf::host
