#include "common/net/port_holder.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/unit/net/net_fixture.h"

namespace dtf::net::testing {
namespace {

TEST(PortHolder, NamesTheProcessThatListens) {
  Reactor reactor;
  Listener listener(reactor.port, "127.0.0.1", 0,
                    [](AcceptedSocket, ConnectionKind, std::string) {});
  EXPECT_EQ(portHolder(listener.port()).rfind("pid " + std::to_string(::getpid()) + " (", 0), 0u)
      << portHolder(listener.port());
}

TEST(PortHolder, IsEmptyForAFreePort) {
  uint16_t port = 0;
  {
    Reactor reactor;
    Listener listener(reactor.port, "127.0.0.1", 0,
                      [](AcceptedSocket, ConnectionKind, std::string) {});
    port = listener.port();
  }
  EXPECT_EQ(portHolder(port), "");
}

}  // namespace
}  // namespace dtf::net::testing
