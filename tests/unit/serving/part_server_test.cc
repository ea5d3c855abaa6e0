#include "common/serving/part_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>

#include "common/net/reactor.h"
#include "common/serving/task_devices.h"

// A task without clients; tests/conformance/part_server_test.cc has clients.
namespace dtf::serving {
namespace {

using ::testing::HasSubstr;

constexpr TaskId kSelf{JobKind::kPs, 0};

struct Idle {
  Idle() {
    cluster.ps.emplace_back().address = {"localhost", 2222};
    cluster.worker.emplace_back().address = {"localhost", 2223};
    devices = makeDevices(cluster, kSelf);
    PartServerOptions options = serverOptions(cluster, kSelf, 1);
    setBytesMax(1 << 20, options.limits);
    server.emplace(std::move(options), loop, sessionDevices(kSelf, devices));
  }
  cluster::ClusterSpec cluster;
  ComputingDevices devices;
  net::Reactor reactor;
  net::ReactorLoop loop{reactor};
  std::optional<PartServer> server;
};

TEST(PartServer, WithoutClientsHoldsNothing) {
  Idle task;
  EXPECT_EQ(task.server->sessions(), 0U);
  EXPECT_EQ(task.server->find(7), nullptr);
  std::map<std::string, double> metrics;
  for (const Metric& metric : task.server->metrics())
    if (!metric.values.empty()) metrics[std::string(metric.name)] = metric.values[0].value;
  EXPECT_EQ(metrics.at("dtf_held_bytes_max"), 1 << 20);
  EXPECT_EQ(metrics.at("dtf_held_bytes"), 0);
}

TEST(PartServer, KnowsTheTasksOfItsCluster) {
  Idle task;
  const auto& address_of = task.server->task().address_of;
  EXPECT_EQ(address_of({JobKind::kWorker, 0})->str(), "localhost:2223");
  EXPECT_FALSE(address_of({JobKind::kWorker, 1}));
  EXPECT_FALSE(address_of({JobKind::kPs, 1}));
}

TEST(PartServer, ItsStatusHasTheAddressOfItsMetrics) {
  Idle task;
  task.server->tellsMetricsAt("localhost:9400");
  EXPECT_THAT(task.server->statusJson(), HasSubstr("localhost:9400"));
}

}  // namespace
}  // namespace dtf::serving
