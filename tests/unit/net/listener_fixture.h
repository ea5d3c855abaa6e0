#pragma once

// A listener in a loop of its own, and the connections that it hands over.

#include <gmock/gmock.h>

#include <string>
#include <utility>
#include <vector>

#include "common/net/listener.h"
#include "tests/unit/net/net_fixture.h"

namespace dtf::net::testing {

struct Accepted {
  Fd fd;
  ConnectionKind kind;
  std::string peer;
};

class ListenerTest : public ::testing::Test {
 protected:
  ~ListenerTest() noexcept override {}  // gtest's may not throw, kj's may
  Listener::OnConnection collect() {
    return [this](AcceptedSocket socket, ConnectionKind kind, std::string peer) {
      accepted_.push_back({std::move(socket.fd), kind, std::move(peer)});
    };
  }
  // Waits until the listener has closed `fd`, and returns its log of that time.
  std::string logUntilClosed(const Fd& fd) {
    ::testing::internal::CaptureStderr();
    char byte;
    runUntil(reactor_, [&] {
      return ::recv(fd.get(), &byte, 1, MSG_DONTWAIT) == 0 || (errno != EAGAIN && errno != 0);
    });
    return ::testing::internal::GetCapturedStderr();
  }
  Reactor reactor_;
  std::vector<Accepted> accepted_;
};

}  // namespace dtf::net::testing
