#pragma once

// Gradients to and from the schema: arenas, or dense elements and rows (common/ps/gradient_layout.h).

#include <capnp/list.h>

#include <cstdint>
#include <span>
#include <vector>

#include "common/net/message_stream.h"
#include "common/ps/gradient_layout.h"

namespace dtf::wire {

// What a bulk connection takes on which such gradients come, and arenas of the shard.
net::Limits gradientLimits(uint64_t elements, const ps::GradientLayout& layout);

// Words of a message that carries it, beside its bytes.
uint64_t gradientWords(const ps::Gradient& gradient);

// `rows` was made with the gradient's number of counts.
void encodeRowCounts(const ps::Gradient& gradient, capnp::List<uint32_t>::Builder rows);

// Errors: kBadData for counts that the layout doesn't have, before anything of that size is read.
std::vector<uint32_t> decodeRowCounts(capnp::List<uint32_t>::Reader rows,
                                      const ps::GradientLayout& layout);

}  // namespace dtf::wire
