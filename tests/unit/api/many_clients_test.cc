// A hundred clients of one task: the issue of backups that outnumber the aggregated replicas.

#include <dtf/server.h>
#include <dtf/supervisor.h>
#include <dtf/sync_replicas.h>
#include <gmock/gmock.h>

#include <chrono>
#include <cmath>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/unit/api/errors.h"
#include "tests/unit/api/temporary_folder.h"

namespace dtf::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr int64_t kClients = 100, kAggregated = 10, kSteps = 3;

// One client, with its graph and its supervisor. Each step halves w: its gradient is 2 w.
struct Client {
  Client(const std::string& folder, int64_t rank)
      : supervisor({.is_chief = rank == 0,
                    .task = "client " + std::to_string(rank),
                    .log_dir = folder,
                    .save_seconds = -1,
                    .summary_seconds = -1,
                    .poll_seconds = 0.2}) {
    const Output w = graph.variable("w", {2}, "ones");
    training =
        syncReplicas(
            GradientDescent{.learning_rate = 0.25},
            {.replicas_to_aggregate = kAggregated, .total_num_replicas = kClients, .rank = rank})
            .minimize(graph, graph.sum(graph.mul(w, w)));
  }
  // Ends when the chief has taken all steps.
  void train(bool is_chief) {
    int64_t step = 0;
    while (!supervisor.shouldStop() && (!is_chief || step < kSteps)) {
      const RunResult result = supervisor.run({}, {graph.name(training.train)});
      if (!result.recovered) step = result.values.at(0).as<int64_t>()[0];
    }
    if (!is_chief) return;
    w = supervisor.run({}, {"w"}).values.at(0).as<float>()[0];
    supervisor.stop();
  }

  Graph graph;
  Supervisor supervisor;
  SyncMinimized training;
  float w = 0;
};

// Waits for the sessions that a client has ended, which the server learns of a little later.
size_t settledSessions(const Server& server, size_t wanted) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (server.sessions() != wanted && std::chrono::steady_clock::now() < deadline)
    std::this_thread::yield();
  return server.sessions();
}

TEST(ApiManyClients, AHundredShareATaskAndHaveASessionEach) {
  const TemporaryFolder folder;
  const Server server(ClusterSpec({{"ps", {"localhost:auto"}}}), "ps", 0);
  std::vector<std::unique_ptr<Client>> clients;
  for (int64_t rank = 0; rank < kClients; ++rank)
    clients.push_back(std::make_unique<Client>(folder.path(), rank));
  const auto inAll = [&](auto act) {
    std::vector<std::future<void>> running;
    for (size_t rank = 0; rank < clients.size(); ++rank)
      running.push_back(std::async(std::launch::async, [&, rank] { act(*clients[rank], rank); }));
    for (auto& each : running) each.get();
  };
  inAll([&](Client& client, size_t) {
    client.supervisor.prepareOrWaitForSession(client.graph, {server.target()});
  });
  EXPECT_EQ(settledSessions(server, kClients), static_cast<size_t>(kClients));
  inAll([](Client& client, size_t rank) { client.train(rank == 0); });
  EXPECT_FLOAT_EQ(std::log2(clients[0]->w), std::round(std::log2(clients[0]->w)));
  EXPECT_LE(clients[0]->w, std::pow(0.5F, static_cast<float>(kSteps)));
}

TEST(ApiManyClients, TheLimitIsAnOptionAndNamesItself) {
  const ClusterSpec cluster =
      ClusterSpec::parse("cluster: {worker: ['localhost:auto']}\nsessions_max: 1\n");
  const auto openTwo = [](const Server& server) {
    Graph graph;
    graph.variable("w", {2}, "ones");
    const Session one(graph, {server.target()});
    return refusal([&] { Session(graph, {server.target()}); });
  };
  EXPECT_THAT(openTwo(Server(cluster, "worker", 0)),
              AllOf(StartsWith("69: "), HasSubstr("worker/0 has 1 sessions, as many as it may"),
                    HasSubstr("raise sessions_max")));
  EXPECT_EQ(openTwo(Server(cluster, "worker", 0, {.sessions_max = 2})), "");
  EXPECT_THAT(refusal([&] { Server(cluster, "worker", 0, {.sessions_max = -1}); }),
              AllOf(StartsWith("2: "), HasSubstr("sessions_max must be from 1 to 65536")));
}

}  // namespace
}  // namespace dtf::testing
