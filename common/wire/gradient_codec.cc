#include "common/wire/gradient_codec.h"

#include <algorithm>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/wire/arena_codec.h"

namespace dtf::wire {

net::Limits gradientLimits(uint64_t elements, const arena::GradientLayout& layout,
                           uint64_t chunk_bytes) {
  net::Limits limits = arenaLimits(std::max(elements, layout.elementsMax()), chunk_bytes);
  for (const arena::SparseSlice& slice : layout.sparse())
    limits.bytes_max += slice.rows * sizeof(uint32_t);
  return limits;
}

uint64_t gradientWords(const arena::Gradient& gradient, uint64_t chunk_bytes) {
  return 2 * arenaChunks(gradient.values.size(), chunk_bytes) +
         (gradient.row_counts.size() + 1) / 2;
}

void encodeRowCounts(const arena::Gradient& gradient, capnp::List<uint32_t>::Builder rows) {
  DTF_CHECK(rows.size() == gradient.row_counts.size());
  for (uint32_t i = 0; i < rows.size(); ++i) rows.set(i, gradient.row_counts[i]);
}

namespace {

// Reads at most one count too many, which is enough for a rejection.
std::vector<uint32_t> readCounts(capnp::List<uint32_t>::Reader rows,
                                 const arena::GradientLayout& layout) {
  const size_t most = std::min<size_t>(rows.size(), layout.sparse().size() + 1);
  std::vector<uint32_t> counts;
  for (uint32_t i = 0; i < most; ++i) counts.push_back(rows[i]);
  return counts;
}

}  // namespace

std::vector<uint32_t> decodeRowCounts(capnp::List<uint32_t>::Reader rows,
                                      const arena::GradientLayout& layout) {
  std::vector<uint32_t> counts = readCounts(rows, layout);
  if (const auto fault = layout.countFault(counts))
    throw Error(ErrorCode::kBadData, "an arena came with " + *fault);
  return counts;
}

uint64_t rowSetWords(const arena::RowSet& set) {
  return (set.counts.size() + 1) / 2 + (set.ids.size() + 1) / 2;
}

arena::RowSet decodeRowSet(capnp::List<uint32_t>::Reader counts, capnp::List<uint32_t>::Reader ids,
                           const arena::GradientLayout& layout) {
  arena::RowSet set;
  if (counts.size() == 0 && ids.size() == 0) return set;
  set.counts = readCounts(counts, layout);
  set.ids.reserve(ids.size());
  for (const uint32_t id : ids) set.ids.push_back(id);
  if (const auto fault = arena::faultOf(set, layout))
    throw Error(ErrorCode::kBadData, "a bad request for rows: " + *fault);
  return set;
}

std::optional<std::vector<std::string>> decodeCodecs(capnp::List<capnp::Text>::Reader codecs) {
  constexpr uint32_t kCodecsMax = 64;
  if (codecs.size() == 0) return std::nullopt;
  std::vector<std::string> names;
  for (uint32_t i = 0; i < std::min(codecs.size(), kCodecsMax); ++i)
    names.emplace_back(codecs[i].cStr(), codecs[i].size());
  return names;
}

}  // namespace dtf::wire
