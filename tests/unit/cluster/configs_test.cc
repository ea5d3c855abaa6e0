// Newcomers copy the files of configs/: they must load, and do as their comments promise.

#include <gtest/gtest.h>

#include <filesystem>

#include "common/cluster/cluster_yaml.h"
#include "tests/support/train_file.h"

namespace dtf::cluster {

namespace {

const std::filesystem::path kConfigs = std::filesystem::path(DTF_SOURCE_ROOT) / "configs";

}  // namespace

TEST(Configs, EveryFileLoads) {
  for (const auto& entry : std::filesystem::directory_iterator(kConfigs / "clusters"))
    EXPECT_TRUE(loadCluster(entry.path(), {}).train) << entry.path();
  for (const auto& entry : std::filesystem::directory_iterator(kConfigs / "jobs"))
    if (!entry.is_directory())
      EXPECT_FALSE(testing::readTrainFile(entry.path()).model.layers.empty()) << entry.path();
  for (const auto& entry : std::filesystem::directory_iterator(kConfigs / "jobs/small"))
    if (entry.path().extension() == ".yaml")
      EXPECT_TRUE(loadCluster(entry.path(), {}).train->data.eval) << entry.path();
}

TEST(Configs, TheOverlayOfKubernetesWithoutPsLoads) {
  const JobSpec job = loadCluster(kConfigs / "kubernetes-without-ps/cluster.yaml", {});
  EXPECT_TRUE(job.cluster.workersHost());
  EXPECT_EQ(job.durability.kind, Durability::kReplica);
  EXPECT_TRUE(job.launch.pauses());
}

TEST(Configs, LocalIsTwoPsAndTwoWorkersOnFixedPorts) {
  const JobSpec job = loadCluster(kConfigs / "clusters/local.yaml", {});
  ASSERT_EQ(job.cluster.ps.size(), 2u);
  ASSERT_EQ(job.cluster.worker.size(), 2u);
  EXPECT_EQ(job.cluster.ps[0].address.str(), "localhost:2221");
  EXPECT_EQ(job.cluster.worker[1].address.str(), "localhost:2224");
  EXPECT_EQ(job.train->data.train.format, DatasetSpec::Format::kDigits);
  EXPECT_EQ(job.train->replication.mode, ReplicationSpec::Mode::kAsync);
}

TEST(Configs, LocalSyncAggregatesBothWorkers) {
  const JobSpec job = loadCluster(kConfigs / "clusters/local-sync.yaml", {});
  EXPECT_EQ(job.train->replication.mode, ReplicationSpec::Mode::kSync);
  EXPECT_EQ(job.train->replication.replicas_to_aggregate, job.cluster.worker.size());
}

TEST(Configs, TowersAreTwoDevicesThatShareABatchEvenly) {
  const JobSpec job = loadCluster(kConfigs / "clusters/towers.yaml", {});
  EXPECT_EQ(devicesOf(job.cluster.worker.at(0)), (std::vector<std::string>{"cpu:0", "cpu:1"}));
  EXPECT_EQ(job.train->data.batch_size % 2, 0);
}

TEST(Configs, MnistIsLookedForInTheRepository) {
  const TrainSpec train = testing::readTrainFile(kConfigs / "jobs/mnist_mlp.yaml");
  EXPECT_EQ(train.data.train.images,
            std::filesystem::path(DTF_SOURCE_ROOT) / "data/mnist/train-images-idx3-ubyte.gz");
  EXPECT_EQ(train.model.layers.size(), 4u);
}

}  // namespace dtf::cluster
