#include "common/serving/connection_metrics.h"

#include <gtest/gtest.h>

#include <optional>

#include "tests/support/http_client.h"
#include "tests/unit/net/echo.capnp.h"
#include "tests/unit/net/net_fixture.h"

namespace dtf::serving {
namespace {

class Echo final : public net::testing::Echo::Server {
 public:
  kj::Promise<void> ping(PingContext) override { return kj::READY_NOW; }
};

net::Traffic trafficOf(const testing::MetricsPage& page) {
  return {static_cast<uint64_t>(page.value("dtf_received_bytes_total")),
          static_cast<uint64_t>(page.value("dtf_sent_bytes_total"))};
}

// Over real sockets: one end has received the bytes that the other end has sent.
TEST(ConnectionMetrics, CountTheBytesOfConnectionsThatAreAndThatWere) {
  net::Reactor reactor;
  net::ReactorLoop loop(reactor);
  wire::ConnectionSet connections(loop, [](const void*) {});
  const auto page = [&connections] {
    return testing::parseMetrics(metricsText(
        connectionMetrics({{"control", wire::loadOf(connections)}}), {{"task", "worker/0"}}));
  };
  EXPECT_EQ(page().value("dtf_connections", "kind=\"control\""), 0);
  auto ends = net::testing::connectedPair(reactor.ioc);
  const auto stream = [&reactor](net::Socket socket) {
    return kj::heap<net::AsioMessageStream>(reactor.port, std::move(socket), net::Limits{},
                                            nullptr);
  };
  connections.serve(stream(std::move(ends.first)), "peer",
                    [](const wire::ConnectionRef&) { return kj::heap<Echo>(); });
  std::optional<net::RpcConnection> client;
  client.emplace(stream(std::move(ends.second)), net::RpcOptions{});
  auto echo = client->bootstrap().castAs<net::testing::Echo>();
  net::testing::waitFor(reactor, echo.pingRequest().send().ignoreResult());
  net::testing::runUntil(
      reactor, [&] { return connections.traffic().sent == client->stream().traffic().received; });
  const net::Traffic of_client = client->stream().traffic();
  EXPECT_GT(of_client.sent, 0u);
  EXPECT_EQ(page().value("dtf_connections"), 1);
  EXPECT_EQ(trafficOf(page()).received, of_client.sent);
  EXPECT_EQ(trafficOf(page()).sent, of_client.received);
  echo = nullptr;
  client.reset();
  net::testing::runUntil(reactor, [&] { return connections.size() == 0; });
  EXPECT_EQ(page().value("dtf_connections"), 0);
  EXPECT_GE(trafficOf(page()).received, of_client.sent) << "with the last words";
  EXPECT_GE(trafficOf(page()).sent, of_client.received);
}

}  // namespace
}  // namespace dtf::serving
