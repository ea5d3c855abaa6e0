#pragma once

// Both ends of a connection in memory, as messages: they are not cut into bytes and put together
// again. A message that can pass at once needs no promise, as on a daemon's sockets.

#include "common/net/message_stream.h"

namespace dtf::fuzz {

struct StreamPair {
  kj::Own<net::MessageStream> near;
  kj::Own<net::MessageStream> far;  // the server's
};

// A write is done when at most this much lies unread at the other end. Small, so that some wait.
inline constexpr size_t kUnreadBytesMax = 512;

// Like sockets, but without limits: one end can read all messages that the other wrote before it
// went; writing to an end that has gone fails as disconnected.
StreamPair memoryStreams();

}  // namespace dtf::fuzz
