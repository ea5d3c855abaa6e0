#pragma once

// Bounds of the messages on control connections.

#include "common/net/message_stream.h"

namespace dtf::wire {

// What a ps takes from a worker whose hello it has accepted; and a worker from a ps, which tells
// the chief of each part of a saved shard.
inline constexpr net::Limits kControlLimits{.bytes_max = 16 << 20};
inline constexpr net::Limits kAnswerLimits{.bytes_max = 256 << 20};

}  // namespace dtf::wire
