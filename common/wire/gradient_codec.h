#pragma once

// Gradients to and from the schema: arenas, or dense elements and rows
// (common/ps/gradient_layout.h).

#include <capnp/list.h>

#include <cstdint>
#include <span>
#include <vector>

#include "common/net/message_stream.h"
#include "common/ps/gradient_layout.h"
#include "common/ps/row_set.h"
#include "common/wire/arena_codec.h"

namespace dtf::wire {

// What a bulk connection takes on which such gradients come, and arenas of the shard; with a set of
// rows.
net::Limits gradientLimits(uint64_t elements, const ps::GradientLayout& layout,
                           uint64_t chunk_bytes = kChunkBytesMax);

// Words of a message that carries it, beside its bytes.
uint64_t gradientWords(const ps::Gradient& gradient, uint64_t chunk_bytes = kChunkBytesMax);

// `rows` was made with the gradient's number of counts.
void encodeRowCounts(const ps::Gradient& gradient, capnp::List<uint32_t>::Builder rows);

// Errors: kBadData for counts that the layout doesn't have, before anything of that size is read.
std::vector<uint32_t> decodeRowCounts(capnp::List<uint32_t>::Reader rows,
                                      const ps::GradientLayout& layout);

// Words of a message that names them.
uint64_t rowSetWords(const ps::RowSet& set);

// Errors: kBadData for a set that the layout doesn't have. Empty counts: all of the shard is
// wanted.
ps::RowSet decodeRowSet(capnp::List<uint32_t>::Reader counts, capnp::List<uint32_t>::Reader ids,
                        const ps::GradientLayout& layout);

// Into the fields of `call`, a pull or an exchange; nothing where all of the shard is wanted.
template <class Call>
void encodeRowSet(const ps::RowSet& set, Call& call) {
  const auto copy = [](const std::vector<uint32_t>& from, capnp::List<uint32_t>::Builder to) {
    for (uint32_t i = 0; i < to.size(); ++i) to.set(i, from[i]);
  };
  if (set.isWhole()) return;
  copy(set.counts, call.initWantedCounts(static_cast<uint32_t>(set.counts.size())));
  copy(set.ids, call.initWantedIds(static_cast<uint32_t>(set.ids.size())));
}

}  // namespace dtf::wire
