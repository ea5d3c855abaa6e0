// The keys of a CLUSTER.yaml.

#include <gtest/gtest.h>

#include "common/cluster/cluster_yaml.h"
#include "tests/support/temporary_files.h"

namespace dtf::cluster {

using testing::badConfigOf;
using testing::TemporaryFiles;

namespace {

constexpr const char* kClusterText =
    "cluster:\n"
    "  ps: [localhost:2221]\n"
    "  worker: [localhost:2223, localhost:2224]\n";

TEST(ReadCluster, DefaultsAreThoseOfTheSpec) {
  const TemporaryFiles files;
  files.write("c.yaml", kClusterText);
  const JobSpec job = loadCluster("c.yaml", {});
  EXPECT_EQ(job.job, "job");
  EXPECT_EQ(job.run_dir, "runs/job");
  EXPECT_EQ(job.timeouts.lease_seconds, Timeouts().lease_seconds);
  EXPECT_FALSE(job.train);
  ASSERT_EQ(job.cluster.worker.size(), 2u);
  EXPECT_EQ(job.cluster.worker[1].address.str(), "localhost:2224");
  EXPECT_EQ(job.cluster.worker[1].mark.file, "c.yaml");
  EXPECT_EQ(job.cluster.worker[1].mark.line, 3);
  EXPECT_EQ(job.cluster.worker[1].mark.column, 28);
}

TEST(ReadCluster, ReadsEveryKey) {
  const TemporaryFiles files;
  files.write(
      "c.yaml",
      "job: mnist-1\nrun_dir: /tmp/r\n"
      "cluster:\n"
      "  ps:\n    - {address: 'a:auto', devices: [cpu:0], env: {OMP_NUM_THREADS: 2, EMPTY: ''}}\n"
      "  worker: [\"[::1]:5\", {address: b:1, threads: 3, devices: [cpu:0, cpu:1]}]\n"
      "launch: {via: local}\n"
      "timeouts: {start_seconds: 1, heartbeat_seconds: .5, lease_seconds: 3, step_seconds: 4,\n"
      "           finish_seconds: 5e1}\n");
  const JobSpec job = loadCluster("c.yaml", {});
  EXPECT_EQ(job.job, "mnist-1");
  EXPECT_EQ(job.run_dir, "/tmp/r");
  const TaskSpec& ps = job.cluster.ps.at(0);
  EXPECT_EQ(ps.address.port, 0);
  EXPECT_EQ(ps.devices, std::vector<std::string>{"cpu:0"});
  EXPECT_EQ(ps.env, (std::map<std::string, std::string>{{"OMP_NUM_THREADS", "2"}, {"EMPTY", ""}}));
  EXPECT_EQ(job.cluster.worker.at(0).address.host, "::1");
  EXPECT_EQ(job.cluster.worker.at(0).threads, 0);
  EXPECT_EQ(job.cluster.worker.at(1).threads, 3);
  EXPECT_EQ(devicesOf(job.cluster.worker.at(0)), std::vector<std::string>{"cpu:0"});
  EXPECT_EQ(devicesOf(job.cluster.worker.at(1)), (std::vector<std::string>{"cpu:0", "cpu:1"}));
  EXPECT_EQ(job.timeouts.heartbeat_seconds, 0.5);
  EXPECT_EQ(job.timeouts.finish_seconds, 50);
}

TEST(ReadCluster, WithAHybridPlacementTheWorkersHostShardsBesideThePs) {
  const TemporaryFiles files;
  files.write("c.yaml",
              "cluster:\n  ps: [a:1, a:2]\n  worker: [b:1, b:2, b:3]\n"
              "train:\n"
              "  model:\n    input: {shape: [4]}\n    layers: [dense: {units: 2}]\n"
              "    loss: sparse_categorical_crossentropy\n"
              "  placement:\n    strategy: hybrid\n"
              "    pins: {x: '/job:ps/task:1', y: '/job:worker/task:2'}\n");
  const JobSpec job = loadCluster("c.yaml", {});
  EXPECT_EQ(job.cluster.shardHosts(), (ShardHosts{2, 3}));
  EXPECT_TRUE(job.cluster.workersHost());
  EXPECT_EQ(job.cluster.hosts().at(2).address.str(), "b:1");
  EXPECT_EQ(job.durability.kind, Durability::kReplica);
  EXPECT_EQ(job.train->replication.mode, ReplicationSpec::Mode::kSync);
  const PlacementSpec& placement = job.train->placement;
  EXPECT_EQ(placement.sparse_shards, 2u);
  EXPECT_EQ(placement.strategy_mark.line, 10);
  EXPECT_EQ(placement.pins.at("x"), "/job:ps/task:1");
  EXPECT_EQ(placement.pins.at("y"), "/job:ps/task:4") << "the shard of worker/2";
  EXPECT_EQ(badConfigOf([] {
              loadCluster("c.yaml",
                          std::vector<std::string>{"train.placement.pins.y=/job:worker/task:3"});
            }),
            "--set train.placement.pins.y=/job:worker/task:3: error: there is no "
            "'/job:worker/task:3': the cluster has 3 workers");
  const JobSpec even =
      loadCluster("c.yaml", std::vector<std::string>{"train.placement={strategy: even}"});
  EXPECT_EQ(even.cluster.shardHosts(), (ShardHosts{2, 0}));
  EXPECT_EQ(even.durability.kind, Durability::kCheckpoint);
  const JobSpec in_a_word =
      loadCluster("c.yaml", std::vector<std::string>{"train.placement=hybrid"});
  EXPECT_EQ(in_a_word.cluster.shardHosts(), (ShardHosts{2, 3}));
  EXPECT_EQ(in_a_word.train->placement.sparse_shards, 2u);
}

TEST(ReadCluster, InOneProcessAHybridPlacementIsAllInIt) {
  const TemporaryFiles files;
  files.write("c.yaml",
              "train:\n"
              "  model:\n    input: {shape: [4]}\n    layers: [dense: {units: 2}]\n"
              "    loss: sparse_categorical_crossentropy\n"
              "  placement: {strategy: hybrid}\n");
  const JobSpec job = loadCluster("c.yaml", {});
  EXPECT_TRUE(job.cluster.isOneProcess());
  EXPECT_EQ(job.train->placement.sparse_shards, 0u);
  const std::string mistake = badConfigOf(
      [] { loadCluster("c.yaml", std::vector<std::string>{"cluster={worker: [a:1, a:2]}"}); });
  EXPECT_NE(mistake.find("c.yaml:6:25: error: 'strategy: hybrid' needs 'ps' in the cluster"),
            std::string::npos)
      << mistake;
}

TEST(ReadCluster, MetricsNeedAPortForEachTaskOfAHostAlone) {
  const TemporaryFiles files;
  files.write("c.yaml", "cluster: {ps: [a:1], worker: [b:65535]}\nmetrics: {port: 65535}\n");
  EXPECT_THROW(loadCluster("c.yaml", {}), Error) << "worker/0 is there itself";
  files.write("c.yaml", "cluster: {ps: [a:1], worker: [b:1]}\nmetrics: {port: 65535}\n");
  EXPECT_EQ(loadCluster("c.yaml", {}).metrics->port, 65535);
}

TEST(ReadCluster, ReadsWhatALostPsCosts) {
  const TemporaryFiles files;
  constexpr std::string_view kTwoPs = "cluster: {ps: [a:1, a:2], worker: [b:1]}\n";
  const auto read = [&files](std::string_view text, std::vector<std::string> overrides = {}) {
    files.write("c.yaml", std::string(text));
    return loadCluster("c.yaml", overrides).durability.str();
  };
  EXPECT_EQ(read(kTwoPs), "checkpoint");
  for (const std::string durability : {"checkpoint", "replica", "snapshot: {every_steps: 12}"}) {
    const std::string line =
        "durability: " + (durability[0] == 's' ? "{" + durability + "}" : durability) + "\n";
    EXPECT_EQ(read(std::string(kTwoPs) + line), durability);
  }
  EXPECT_EQ(read(std::string(kTwoPs) + "durability: {replica: }\n"), "replica");
  EXPECT_EQ(read(kTwoPs, {"durability=replica"}), "replica");
  EXPECT_EQ(read(kTwoPs, {"durability.snapshot.every_steps=7"}), "snapshot: {every_steps: 7}");
}

}  // namespace
}  // namespace dtf::cluster
