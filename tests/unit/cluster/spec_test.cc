#include "common/cluster/spec.h"

#include <gtest/gtest.h>

namespace dtf::cluster {
namespace {

TEST(Spec, ADurabilityReadsAsInTheFile) {
  EXPECT_EQ((DurabilitySpec{Durability::kCheckpoint, 0}.str()), "checkpoint");
  EXPECT_EQ((DurabilitySpec{Durability::kSnapshot, 100}.str()), "snapshot: {every_steps: 100}");
  EXPECT_EQ((DurabilitySpec{Durability::kReplica, 0}.str()), "replica");
}

TaskSpec at(std::string host, int threads = 0) {
  TaskSpec task;
  task.address = {std::move(host), 1};
  task.threads = threads;
  return task;
}

TEST(Spec, TheWorkersOfAHostShareItsCores) {
  ClusterSpec cluster;
  cluster.ps = {at("a"), at("b")};
  cluster.worker = {at("a"), at("b"), at("A"), at("localhost"), at("127.0.0.1"), at("a", 5)};
  EXPECT_EQ(workersBeside(cluster, 0), 3);
  EXPECT_EQ(workersBeside(cluster, 1), 1);
  EXPECT_EQ(workersBeside(cluster, 4), 2);
  EXPECT_EQ(computeThreads(cluster, 0, 16), 5);
  EXPECT_EQ(computeThreads(cluster, 1, 16), 16);
  EXPECT_EQ(computeThreads(cluster, 0, 2), 1) << "at least one";
  EXPECT_EQ(computeThreads(cluster, 5, 16), 5) << "what the file says";
  EXPECT_EQ(computeThreads(cluster, 1, 100'000), kThreadsMax);
  EXPECT_EQ(tasksBeside(cluster, {JobKind::kPs, 0}), 4) << "three workers and itself";
  EXPECT_EQ(tasksBeside(cluster, {JobKind::kWorker, 4}), 2);
}

TEST(Spec, ThePsHostTheShardsOrElseTheWorkers) {
  ClusterSpec cluster;
  cluster.worker = {at("a"), at("b")};
  EXPECT_EQ(cluster.shardHosts(), (ShardHosts{0, 2}));
  EXPECT_EQ(cluster.hosts().at(1).address.host, "b");
  cluster.ps = {at("c")};
  EXPECT_EQ(cluster.shardHosts(), (ShardHosts{1, 0}));
  EXPECT_EQ(cluster.hosts().at(0).address.host, "c");
  EXPECT_FALSE(cluster.workersHost());
  cluster.hybrid = true;
  EXPECT_EQ(cluster.shardHosts(), (ShardHosts{1, 2}));
  EXPECT_TRUE(cluster.workersHost());
  EXPECT_EQ(cluster.hosts().at(2).address.host, "b");
}

TEST(Spec, TheTasksOfAHostCountUpFromThePortOfMetrics) {
  JobSpec job;
  job.cluster.ps = {at("a"), at("b")};
  job.cluster.worker = {at("a"), at("b"), at("A")};
  EXPECT_EQ(metricsPort(job, {JobKind::kPs, 0}), std::nullopt);
  job.metrics = {.port = 0};
  EXPECT_EQ(metricsPort(job, {JobKind::kWorker, 2}), 0);
  job.metrics = {.port = 9400};
  EXPECT_EQ(metricsPort(job, {JobKind::kPs, 0}), 9400);
  EXPECT_EQ(metricsPort(job, {JobKind::kPs, 1}), 9400) << "on a host of its own";
  EXPECT_EQ(metricsPort(job, {JobKind::kWorker, 0}), 9401);
  EXPECT_EQ(metricsPort(job, {JobKind::kWorker, 1}), 9401);
  EXPECT_EQ(metricsPort(job, {JobKind::kWorker, 2}), 9402);
}

}  // namespace
}  // namespace dtf::cluster
