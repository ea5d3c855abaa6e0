#include "common/serving/task_listener.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/graph/error_text.h"

namespace dtf::serving {
namespace {

using graph::testing::errorText;
using ::testing::HasSubstr;

constexpr TaskId kPs{JobKind::kPs, 0};

cluster::ClusterSpec clusterAt(const std::string& host, uint16_t port = 0) {
  cluster::ClusterSpec cluster;
  cluster.ps.emplace_back().address = {host, port};
  return cluster;
}

std::unique_ptr<net::Listener> listenAt(net::Reactor& reactor,
                                        const cluster::ClusterSpec& cluster) {
  return listen(reactor, cluster, kPs, net::Credentials(), std::nullopt,
                [](net::AcceptedSocket, net::ConnectionKind, const std::string&) {});
}

TEST(TaskListener, LeavesThePortToTheKernel) {
  net::Reactor reactor;
  const auto listener = listenAt(reactor, clusterAt("127.0.0.1"));
  EXPECT_NE(listener->port(), 0);
  EXPECT_THAT(listener->address(), HasSubstr("127.0.0.1:"));
}

TEST(TaskListener, NamesThePortThatIsTaken) {
  net::Reactor reactor;
  const auto first = listenAt(reactor, clusterAt("127.0.0.1"));
  const uint16_t port = first->port();
  EXPECT_THAT(errorText([&] { listenAt(reactor, clusterAt("127.0.0.1", port)); }),
              HasSubstr(std::to_string(port)));
}

TEST(TaskListener, RefusesAnAddressThatOthersReach) {
  net::Reactor reactor;
  cluster::ClusterSpec open = clusterAt("0.0.0.0");
  EXPECT_THAT(errorText([&] { listenAt(reactor, open); }), HasSubstr("insecure"));
  open.insecure = true;
  EXPECT_NE(listenAt(reactor, open)->port(), 0);
}

TEST(TaskListener, GivesTheReasonOfItsCaller) {
  EXPECT_THAT(errorText([&] {
                checkReach("10.0.0.5:2222", clusterAt("10.0.0.5"), kPs, cluster::refusalToShow);
              }),
              HasSubstr("/metrics"));
}

}  // namespace
}  // namespace dtf::serving
