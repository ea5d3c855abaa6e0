#include "common/wire/gradient_codec.h"

#include <algorithm>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/wire/arena_codec.h"

namespace dtf::wire {

net::Limits gradientLimits(uint64_t elements, const ps::GradientLayout& layout) {
  return arenaLimits(std::max(elements, layout.elementsMax()));
}

uint64_t gradientWords(const ps::Gradient& gradient) {
  return 2 * arenaChunks(gradient.values.size()) + (gradient.row_counts.size() + 1) / 2;
}

void encodeRowCounts(const ps::Gradient& gradient, capnp::List<uint32_t>::Builder rows) {
  DTF_CHECK(rows.size() == gradient.row_counts.size());
  for (uint32_t i = 0; i < rows.size(); ++i) rows.set(i, gradient.row_counts[i]);
}

std::vector<uint32_t> decodeRowCounts(capnp::List<uint32_t>::Reader rows,
                                      const ps::GradientLayout& layout) {
  // One too many is enough to be refused, however many came.
  const size_t most = std::min<size_t>(rows.size(), layout.sparse().size() + 1);
  std::vector<uint32_t> counts;
  for (uint32_t i = 0; i < most; ++i) counts.push_back(rows[i]);
  if (const auto fault = layout.countFault(counts))
    throw Error(ErrorCode::kBadData, "a gradient came with " + *fault);
  return counts;
}

}  // namespace dtf::wire
