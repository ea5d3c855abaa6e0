#pragma once

// Bounds of the messages on control connections.

#include "common/net/message_stream.h"

namespace dtf::wire {

// Limits after the hello: of a worker's requests, and of a ps's replies. The latter are larger,
// since the chief receives an entry for each part of a saved shard.
inline constexpr net::Limits kControlLimits{.bytes_max = 16 << 20};
inline constexpr net::Limits kAnswerLimits{.bytes_max = 256 << 20};

}  // namespace dtf::wire
