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

// Returns the limits of the messages on a bulk connection that carry gradients of `layout`, arenas
// of the shard, and sets of rows.
net::Limits gradientLimits(uint64_t elements, const arena::GradientLayout& layout,
                           uint64_t chunk_bytes = kChunkBytesMax);

// Returns the words of a message with the gradient, beside its values.
uint64_t gradientWords(const arena::Gradient& gradient, uint64_t chunk_bytes = kChunkBytesMax);

// `rows` was made with the gradient's number of counts.
void encodeRowCounts(const arena::Gradient& gradient, capnp::List<uint32_t>::Builder rows);

// Errors: kBadData for counts that the layout doesn't have, before anything of that size is read.
std::vector<uint32_t> decodeRowCounts(capnp::List<uint32_t>::Reader rows,
                                      const arena::GradientLayout& layout);

// Returns the words of a message for the counts and ids of the set.
uint64_t rowSetWords(const arena::RowSet& set);

// Empty counts stand for all rows of the shard.
// Errors: kBadData for a set that the layout doesn't have.
arena::RowSet decodeRowSet(capnp::List<uint32_t>::Reader counts, capnp::List<uint32_t>::Reader ids,
                           const arena::GradientLayout& layout);

// Writes the set into the fields of `call`, a pull or an exchange; a whole set leaves them empty.
template <class Call>
void encodeRowSet(const arena::RowSet& set, Call& call) {
  const auto copy = [](const std::vector<uint32_t>& from, capnp::List<uint32_t>::Builder to) {
    for (uint32_t i = 0; i < to.size(); ++i) to.set(i, from[i]);
  };
  if (set.isWhole()) return;
  copy(set.counts, call.initWantedCounts(static_cast<uint32_t>(set.counts.size())));
  copy(set.ids, call.initWantedIds(static_cast<uint32_t>(set.ids.size())));
}

// Writes the codecs of this version into the field `codecs` of a hello, or of the reply to one.
template <class Hello>
void encodeCodecs(Hello& hello) {
  const std::vector<std::string_view> names = arena::codecNames();
  auto codecs = hello.initCodecs(static_cast<uint32_t>(names.size()));
  for (uint32_t i = 0; i < codecs.size(); ++i)
    codecs.set(i, capnp::Text::Reader(names[i].data(), names[i].size()));
}

// Returns the codecs of a peer, a few dozen at most; nullopt: its version sends none.
std::optional<std::vector<std::string>> decodeCodecs(capnp::List<capnp::Text>::Reader codecs);

// The field `transport` of a hello, and of the reply to one: empty for TCP, as of versions without
// it.
inline const char* transportName(bool is_rdma) {
  return is_rdma ? "rdma" : "";
}
inline cluster::Transport decodeTransport(capnp::Text::Reader name) {
  return name == "rdma" ? cluster::Transport::kRdma : cluster::Transport::kTcp;
}

}  // namespace dtf::wire
