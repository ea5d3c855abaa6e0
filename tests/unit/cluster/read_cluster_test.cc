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
