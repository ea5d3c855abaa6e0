#include <dtf/device_setter.h>
#include <dtf/server.h>
#include <dtf/session.h>
#include <gmock/gmock.h>
#include <signal.h>

#include <cmath>
#include <future>

#include "tests/unit/api/errors.h"

namespace dtf::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

ClusterSpec onePs() {
  return ClusterSpec({{"ps", {"localhost:auto"}}});
}

// Reads its own address out of "dtf://localhost:1234/ps/0".
std::string addressOf(const Server& server) {
  const std::string target = server.target();
  const size_t begin = std::string("dtf://").size();
  return target.substr(begin, target.find('/', begin) - begin);
}

TEST(ApiCluster, HasTheAddressesOfItsJobs) {
  const ClusterSpec cluster({{"ps", ClusterSpec::hosts("a:1,b:2")}, {"worker", {"c:3"}}});
  EXPECT_EQ(cluster.numTasks("ps"), 2U);
  EXPECT_EQ(cluster.taskAddress("ps", 1), "b:2");
  EXPECT_EQ(cluster.numTasks("chief"), 0U);
  EXPECT_THAT(refusal([&] { cluster.taskAddress("worker", 1); }),
              StartsWith("78: the cluster has no worker/1"));
  EXPECT_TRUE(ClusterSpec::hosts("").empty());
}

TEST(ApiCluster, IsReadFromTheTextOfAClusterFile) {
  const ClusterSpec cluster =
      ClusterSpec::parse("cluster:\n  ps: [localhost:2222]\n  worker: [localhost:2223]\n");
  EXPECT_EQ(cluster.taskAddress("worker", 0), "localhost:2223");
  EXPECT_THAT(refusal([] { ClusterSpec::parse("cluster:\n  wrokers: [localhost:2223]\n"); }),
              AllOf(StartsWith("78: "), HasSubstr("cluster:2:3: error: unknown key 'wrokers'")));
}

TEST(ApiCluster, NamesTheMistakeInAnAddress) {
  EXPECT_THAT(refusal([] {
                ClusterSpec({{"ps", {"nowhere"}}});
              }),
              StartsWith("78: bad address 'nowhere' of ps/0: an address is host:port"));
  EXPECT_THAT(refusal([] {
                ClusterSpec({{"master", {"a:1"}}});
              }),
              StartsWith("78: unknown job 'master'"));
  EXPECT_THAT(refusal([] {
                ClusterSpec({{"ps", {"localhost:1"}}, {"worker", {"127.0.0.1:1"}}});
              }),
              AllOf(StartsWith("78: "), HasSubstr("is in use by ps/0")));
}

TEST(ApiServer, ServesASessionOfAnotherPart) {
  Server server(onePs(), "ps", 0);
  Graph graph;
  const Output w = graph.variable("w", {2});
  graph.op("AssignAdd", {w, graph.placeholder("x", DTF_FLOAT32, {2})}, {}, "count");
  Session session(graph, {server.target()});
  EXPECT_EQ(server.sessions(), 1U);
  session.initialize();
  const std::vector<float> values = {1, 2};
  session.run({{"x", Tensor::of<float>({2}, values)}}, {}, {"count"});
  EXPECT_THAT(session.run({}, {"w"}).at(0).as<float>(), ElementsAre(1, 2));
  Session other(graph, {server.target()});
  EXPECT_THAT(other.run({}, {"w"}).at(0).as<float>(), ElementsAre(1, 2))
      << "variables belong to the server";
}

// A cluster of one ps and one worker, on ports that were free a moment ago.
ClusterSpec twoTasks() {
  const Server one(onePs(), "ps", 0), two(onePs(), "ps", 0);
  return ClusterSpec({{"ps", {addressOf(one)}}, {"worker", {addressOf(two)}}});
}

TEST(ApiServer, TasksOfOneClusterReachEachOther) {
  const ClusterSpec cluster = twoTasks();
  Server ps(cluster, "ps", 0);
  Server worker(cluster, "worker", 0, {.devices = "cpu:0,cpu:1", .threads = 2});
  Graph graph;
  {
    const auto devices = graph.device(replicaDeviceSetter(cluster, "/job:worker/task:0/cpu:1"));
    const Output w = graph.variable("w", {2}, "ones");
    graph.op("Scale", {w}, {{"factor", 3.0}}, "y");
  }
  Session session(graph, {worker.target()});
  session.initialize();
  EXPECT_THAT(session.run({}, {"y"}).at(0).as<float>(), ElementsAre(3, 3));
  EXPECT_EQ(ps.sessions(), 1U) << "w is there";
}

TEST(ApiServer, TellsWhyItCantStart) {
  Server first(onePs(), "ps", 0);
  const ClusterSpec taken({{"ps", {addressOf(first)}}});
  EXPECT_THAT(refusal([&] { Server(taken, "ps", 0); }),
              AllOf(StartsWith("69: "), HasSubstr(addressOf(first))));
  EXPECT_THAT(refusal([&] { Server(taken, "chief", 0); }), StartsWith("78: unknown job 'chief'"));
  EXPECT_THAT(refusal([&] { Server(taken, "ps", 1); }),
              StartsWith("78: there is no ps/1: the cluster has 1 task of ps, ps/0"));
  EXPECT_THAT(refusal([&] { Server(taken, "worker", -1); }), StartsWith("78: there is no"));
  EXPECT_THAT(refusal([] {
                Server(ClusterSpec({{"ps", {"0.0.0.0:auto"}}}), "ps", 0);
              }),
              AllOf(StartsWith("78: "), HasSubstr("insecure")));
  EXPECT_THAT(refusal([] { Server(onePs(), "ps", 0, {.devices = "gpu:0"}); }),
              AllOf(StartsWith("2: "), HasSubstr("only workers have devices")));
  EXPECT_THAT(refusal([] { Server(onePs(), "ps", 0, {.keys = "/nowhere"}); }),
              AllOf(StartsWith("65: "), HasSubstr("/nowhere")));
}

TEST(ApiServer, JoinWaitsUntilItIsStoppedAndSaysWhy) {
  Server server(onePs(), "ps", 0);
  EXPECT_FALSE(server.joinFor(0));
  auto joined = std::async(std::launch::async, [&] { return server.join(); });
  server.stop("the last worker has ended");
  server.stop("another reason");
  const Server::Stopped stopped = joined.get();
  EXPECT_EQ(stopped.reason, "the last worker has ended");
  EXPECT_EQ(stopped.signal, 0);
  EXPECT_TRUE(server.joinFor(1000));
}

TEST(ApiServer, AReasonThatIsCutIsAStringStill) {
  dtf_cluster* cluster = nullptr;
  ASSERT_EQ(dtf_cluster_new(&cluster), DTF_OK);
  ASSERT_EQ(dtf_cluster_add(cluster, "ps", "localhost:auto"), DTF_OK);
  dtf_server* server = nullptr;
  ASSERT_EQ(dtf_server_start(cluster, "ps", 0, nullptr, &server), DTF_OK);
  EXPECT_EQ(dtf_server_join(server, NAN, nullptr, 0, nullptr, nullptr), DTF_USAGE);
  ASSERT_EQ(dtf_server_stop(server, "the end"), DTF_OK);
  std::string reason(7, '?');
  size_t bytes = 0;
  EXPECT_EQ(dtf_server_join(server, -1, reason.data(), 4, &bytes, nullptr), DTF_OK);
  EXPECT_EQ(reason, std::string("the\0???", 7));
  EXPECT_EQ(bytes, 8U);
  EXPECT_EQ(dtf_server_join(server, -1, reason.data(), 0, &bytes, nullptr), DTF_OK);
  EXPECT_EQ(reason.front(), 't') << "no room";
  dtf_server_free(server);
  dtf_cluster_free(cluster);
}

TEST(ApiServer, TakesSignalsOnlyIfToldTo) {
  struct sigaction before {};
  ASSERT_EQ(sigaction(SIGTERM, nullptr, &before), 0);
  {
    Server server(onePs(), "ps", 0);
    struct sigaction now {};
    ASSERT_EQ(sigaction(SIGTERM, nullptr, &now), 0);
    EXPECT_EQ(now.sa_handler, before.sa_handler);
  }
  Server server(onePs(), "ps", 0, {.handle_signals = true});
  ASSERT_EQ(raise(SIGTERM), 0);
  const Server::Stopped stopped = server.join();
  EXPECT_EQ(stopped.reason, "ps/0 received SIGTERM");
  EXPECT_EQ(stopped.signal, SIGTERM);
}

TEST(ApiServer, ItsEndEndsTheStepsOfItsClients) {
  auto server = std::make_unique<Server>(onePs(), "ps", 0);
  Graph graph;
  graph.variable("w", {2});
  Session session(graph, {server->target()});
  session.initialize();
  server.reset();
  EXPECT_THAT(refusal([&] { session.run({}, {"w"}); }),
              AllOf(StartsWith("69: "), HasSubstr("ps/0")));
}

TEST(ApiServer, ProgramsWithOtherClustersAreNamed) {
  Server ps(ClusterSpec({{"ps", {"localhost:auto", "localhost:1"}}}), "ps", 0);
  const ClusterSpec one({{"ps", {addressOf(ps)}}, {"worker", {"localhost:auto"}}});
  Server worker(one, "worker", 0);
  Graph graph;
  {
    const auto there = graph.device("/job:ps/task:0");
    graph.variable("w", {2});
  }
  EXPECT_THAT(refusal([&] { Session(graph, {worker.target()}); }),
              AllOf(StartsWith("78: "), HasSubstr("were started with different clusters: "),
                    HasSubstr("ps/0 has ps/1 at localhost:1, worker/0 has no ps/1;"),
                    HasSubstr("the same addresses")));
}

// Opens a session on the worker of a cluster with two ps, one of which is never reached. The ps and
// the worker have their own spellings of the hosts, and of the other ps.
std::string refusalOfSpellings(const std::string& host_of_ps, const std::string& other_of_ps,
                               const std::string& other_of_worker) {
  const auto free_port = [] {
    const std::string address = addressOf(Server(onePs(), "ps", 0));
    return address.substr(address.find(':'));
  };
  const std::string of_ps = free_port(), of_worker = free_port();
  Server ps(ClusterSpec(
                {{"ps", {host_of_ps + of_ps, other_of_ps}}, {"worker", {"127.0.0.1" + of_worker}}}),
            "ps", 0, {.insecure = true});
  Server worker(ClusterSpec({{"ps", {"localhost" + of_ps, other_of_worker}},
                             {"worker", {"localhost" + of_worker}}}),
                "worker", 0, {.insecure = true});
  Graph graph;
  {
    const auto there = graph.device("/job:ps/task:0");
    graph.variable("w", {2});
  }
  return refusal([&] { Session(graph, {worker.target()}).initialize(); });
}

TEST(ApiServer, HostsMayBeSpelledDifferentlyInEachProgram) {
  EXPECT_EQ(refusalOfSpellings("0.0.0.0", "localhost:9", "localhost:9"), "");
  EXPECT_EQ(refusalOfSpellings("127.0.0.1", "127.0.0.2:9", "other-host:9"), "");
  EXPECT_THAT(refusalOfSpellings("localhost", "localhost:9", "localhost:8"),
              AllOf(StartsWith("78: "),
                    HasSubstr("worker/0 has ps/1 at localhost:8, ps/0 has it at localhost:9;")));
}

TEST(ApiServer, ATargetWithoutAddressesHidesNoDifference) {
  Server without(onePs(), "ps", 0);
  Server one(
      ClusterSpec({{"ps", {"localhost:auto"}}, {"worker", {"localhost:auto", "a:1", "a:3"}}}),
      "worker", 0);
  Server two(
      ClusterSpec({{"ps", {"localhost:auto"}}, {"worker", {"a:2", "localhost:auto", "a:4"}}}),
      "worker", 1);
  Graph graph;
  graph.variable("w", {2});
  EXPECT_THAT(refusal([&] {
                Session(graph, {without.target(), one.target(), two.target()});
              }),
              AllOf(StartsWith("78: "),
                    HasSubstr("worker/0 has worker/2 at a:3, worker/1 has it at a:4;")));
}

TEST(ApiServer, AGraphThatNamesATaskOnAnAutomaticPortIsRefused) {
  const ClusterSpec cluster({{"ps", {"localhost:auto"}}, {"worker", {"localhost:auto"}}});
  Server ps(cluster, "ps", 0), worker(cluster, "worker", 0);
  Graph graph;
  {
    const auto there = graph.device("/job:ps/task:0");
    graph.variable("w", {2}, "ones");
  }
  EXPECT_THAT(refusal([&] { Session(graph, {worker.target()}); }),
              AllOf(StartsWith("78: the graph names ps/0, which has the address localhost:auto in "
                               "the cluster of worker/0"),
                    HasSubstr("give ps/0 a port in the cluster of every program")));
}

// The devices of variables of 4, 4, 4 and 400 bytes.
std::vector<std::string> devicesOf(PsStrategy strategy) {
  const DeviceFunction choose = replicaDeviceSetter(2, "/job:worker/task:1", strategy);
  std::vector<std::string> devices;
  for (const int64_t size : {100, 1, 1, 1})
    devices.push_back(choose("Variable", {{"shape", Dims{size}}}));
  devices.push_back(choose("MatMul", {}));
  return devices;
}

TEST(ReplicaDeviceSetter, GivesVariablesToEachPsInTurn) {
  EXPECT_THAT(devicesOf(PsStrategy::kRoundRobin),
              ElementsAre("/job:ps/task:0", "/job:ps/task:1", "/job:ps/task:0", "/job:ps/task:1",
                          "/job:worker/task:1"));
}

TEST(ReplicaDeviceSetter, BalancesBytes) {
  EXPECT_THAT(devicesOf(PsStrategy::kGreedyLoadBalancing),
              ElementsAre("/job:ps/task:0", "/job:ps/task:1", "/job:ps/task:1", "/job:ps/task:1",
                          "/job:worker/task:1"));
}

TEST(ReplicaDeviceSetter, WithoutPsAllIsOnTheWorker) {
  EXPECT_EQ(replicaDeviceSetter(0, "/job:worker/task:1")("Variable", {}), "/job:worker/task:1");
}

TEST(ReplicaDeviceSetter, ADeviceWithinReplacesIt) {
  Graph graph;
  Output on_cpu{};
  {
    const auto outer = graph.device("/job:worker/task:5");
    {
      const auto devices = graph.device(replicaDeviceSetter(1));
      const auto inner = graph.device("/job:ps/task:3");
      EXPECT_EQ(graph.device(), "/job:ps/task:3");
      on_cpu = graph.variable("w", {1});
    }
    EXPECT_EQ(graph.device(), "/job:worker/task:5");
  }
  EXPECT_GE(on_cpu.node, 0);
}

}  // namespace
}  // namespace dtf::testing
