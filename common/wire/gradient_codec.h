#pragma once

// Gradients to and from the schema: arenas, or dense elements and rows
// (common/arena/gradient_layout.h).

#include <capnp/list.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/arena/codec.h"
#include "common/arena/gradient_layout.h"
#include "common/arena/row_set.h"
#include "common/net/message_stream.h"
#include "common/wire/arena_codec.h"

namespace dtf::wire {

// What a bulk connection takes on which such gradients come, and arenas of the shard; with a set of
// rows.
net::Limits gradientLimits(uint64_t elements, const arena::GradientLayout& layout,
                           uint64_t chunk_bytes = kChunkBytesMax);

// Words of a message that carries it, beside its bytes.
uint64_t gradientWords(const arena::Gradient& gradient, uint64_t chunk_bytes = kChunkBytesMax);

// `rows` was made with the gradient's number of counts.
void encodeRowCounts(const arena::Gradient& gradient, capnp::List<uint32_t>::Builder rows);

// Errors: kBadData for counts that the layout doesn't have, before anything of that size is read.
std::vector<uint32_t> decodeRowCounts(capnp::List<uint32_t>::Reader rows,
                                      const arena::GradientLayout& layout);

// Words of a message that names them.
uint64_t rowSetWords(const arena::RowSet& set);

// Errors: kBadData for a set that the layout doesn't have. Empty counts: all of the shard is
// wanted.
arena::RowSet decodeRowSet(capnp::List<uint32_t>::Reader counts, capnp::List<uint32_t>::Reader ids,
                           const arena::GradientLayout& layout);

// Into the fields of `call`, a pull or an exchange; nothing where all of the shard is wanted.
template <class Call>
void encodeRowSet(const arena::RowSet& set, Call& call) {
  const auto copy = [](const std::vector<uint32_t>& from, capnp::List<uint32_t>::Builder to) {
    for (uint32_t i = 0; i < to.size(); ++i) to.set(i, from[i]);
  };
  if (set.isWhole()) return;
  copy(set.counts, call.initWantedCounts(static_cast<uint32_t>(set.counts.size())));
  copy(set.ids, call.initWantedIds(static_cast<uint32_t>(set.ids.size())));
}

// The codecs of this version, into the field `codecs` of a hello or of its answer.
template <class Hello>
void encodeCodecs(Hello& hello) {
  const std::vector<std::string_view> names = arena::codecNames();
  auto codecs = hello.initCodecs(static_cast<uint32_t>(names.size()));
  for (uint32_t i = 0; i < codecs.size(); ++i)
    codecs.set(i, capnp::Text::Reader(names[i].data(), names[i].size()));
}

// The codecs of a peer; nullopt: it is of a version that names none. Reads a few dozen at most.
std::optional<std::vector<std::string>> decodeCodecs(capnp::List<capnp::Text>::Reader codecs);

}  // namespace dtf::wire
