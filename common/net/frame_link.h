#pragma once

// Inside common/net: what the two halves of an AsioMessageStream share.

#include <utility>

#include "common/net/asio.h"
#include "common/net/event_port.h"

namespace dtf::net {

// Shared by reader, writer and their Asio handlers; the last of them closes the socket.
struct FrameLink {
  FrameLink(AsioEventPort& port, Socket socket) : port(port), socket(std::move(socket)) {
    this->socket.non_blocking(true);
  }
  AsioEventPort& port;
  Socket socket;
};

// One connection may move this much before the loop looks at the others.
inline constexpr size_t kBurstBytes = 4 << 20;

}  // namespace dtf::net
