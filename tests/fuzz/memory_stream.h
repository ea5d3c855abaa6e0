#pragma once

// Both ends of a connection in memory, as messages: nothing is cut into bytes and put together
// again, and what can pass at once passes without a promise, as on a daemon's sockets.

#include "common/net/message_stream.h"

namespace dtf::fuzz {

struct StreamPair {
  kj::Own<net::MessageStream> near;
  kj::Own<net::MessageStream> far;  // the server's
};

// A write is done when no more than this lies unread at the other end. Small, so that some wait.
inline constexpr size_t kUnreadBytesMax = 512;

// As sockets do, but without limits: what one end has written the other can read after the first
// has gone; writing to an end that has gone fails as disconnected.
StreamPair memoryStreams();

}  // namespace dtf::fuzz
