#include "common/cluster/read_replication.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "common/cluster/cluster_yaml.h"
#include "tests/support/temporary_files.h"
#include "tests/unit/cluster/bad_file.h"

namespace dtf::cluster {

using testing::badConfigOf;
using testing::TemporaryFiles;

class TransferDtype : public ::testing::Test {
 protected:
  ReplicationSpec read(const std::string& replication,
                       const std::string& cluster = "{ps: [a:1], worker: [b:1]}") {
    files_.write("c.yaml", "cluster: " + cluster +
                               "\ntrain:\n"
                               "  model: {input: {shape: [2]}, layers: [relu], loss: mse}\n"
                               "  replication: " +
                               replication + "\n");
    return loadCluster("c.yaml", {}).train->replication;
  }
  std::string reportOf(const std::string& replication, const std::string& cluster) {
    return badConfigOf([&] { read(replication, cluster); });
  }
  const TemporaryFiles files_;
};

TEST_F(TransferDtype, IsFloat32UnlessTheFileSaysBFloat16) {
  using enum ReplicationSpec::TransferDtype;
  EXPECT_EQ(read("{mode: sync}").transfer_dtype, kFloat32);
  EXPECT_EQ(read("{transfer_dtype: float32}").transfer_dtype, kFloat32);
  EXPECT_EQ(read("{transfer_dtype: bfloat16}").transfer_dtype, kBFloat16);
  EXPECT_EQ(read("{mode: sync, transfer_dtype: bfloat16}").transfer_dtype, kBFloat16);
}

TEST_F(TransferDtype, AnotherTypeIsRefused) {
  const std::string report = reportOf("{transfer_dtype: float16}", "{ps: [a:1], worker: [b:1]}");
  EXPECT_NE(report.find("c.yaml:4:33: error: unknown transfer_dtype 'float16' - did you mean "
                        "'bfloat16'?"),
            std::string::npos)
      << report;
}

TEST_F(TransferDtype, WithoutAPsNothingTravels) {
  const std::string report = reportOf("{transfer_dtype: bfloat16}", "{worker: [local]}");
  EXPECT_NE(report.find("c.yaml:4:17: error: 'transfer_dtype' needs a ps, and the cluster has "
                        "none: nothing travels"),
            std::string::npos)
      << report;
  EXPECT_EQ(read("{transfer_dtype: float32}", "{worker: [local]}").transfer_dtype,
            ReplicationSpec::TransferDtype::kFloat32);
}

TEST_F(TransferDtype, LossyFormsAreInTheMapOfTransfer) {
  using enum ReplicationSpec::TransferDtype;
  EXPECT_EQ(read("{transfer: {dtype: bfloat16}}").transfer_dtype, kBFloat16);
  EXPECT_EQ(read("{transfer: {dtype: int8}}").transfer_dtype, kInt8);
  const ReplicationSpec sparse = read("{transfer: {top_k: 0.01}}");
  EXPECT_EQ(sparse.transfer_dtype, kTopK);
  EXPECT_EQ(sparse.transfer_top_k, 0.01);
}

TEST_F(TransferDtype, FormsThatContradictEachOtherAreRefused) {
  const std::string cluster = "{ps: [a:1], worker: [b:1]}";
  const auto expect = [&](const std::string& replication, const std::string& message) {
    const std::string report = reportOf(replication, cluster);
    EXPECT_NE(report.find(message), std::string::npos) << report;
  };
  expect("{transfer: {dtype: int8, top_k: 0.01}}", "leave 'dtype' or 'top_k' out");
  expect("{transfer_dtype: bfloat16, transfer: {dtype: int8}}", "leave 'transfer_dtype' out");
  expect("{transfer_dtype: int8}", "unknown transfer_dtype 'int8'");
  expect("{transfer: {top_k: 0}}", "top_k");
  expect("{transfer: {top_k: 0.6}}", "top_k");
  expect("{transfer: int8}", "transfer");
  const std::string alone = reportOf("{transfer: {dtype: int8}}", "{worker: [local]}");
  EXPECT_NE(alone.find("'transfer' needs a ps, and the cluster has none"), std::string::npos)
      << alone;
}

class Topology : public TransferDtype {};

TEST_F(Topology, WorkersWithOneAddressSumTheirGradients) {
  const std::string cluster = "{ps: [a:1], worker: [b:1, c:1, b:2, a:2, C:2]}";
  using Leaders = std::vector<uint32_t>;
  EXPECT_EQ(read("{mode: sync, topology: {hosts: sum}}", cluster).host_leaders,
            (Leaders{0, 1, 0, 3, 1}));
  EXPECT_EQ(read("{mode: sync, topology: {hosts: apart}}", cluster).host_leaders, Leaders{});
  EXPECT_EQ(read("{mode: sync}", cluster).host_leaders, Leaders{});
  EXPECT_EQ(read("{topology: {hosts: sum}}", "{worker: [b:1, b:2]}").host_leaders, (Leaders{0, 0}));
}

TEST_F(Topology, IsRefusedWhereItMakesNoSense) {
  const std::string cluster = "{ps: [a:1], worker: [b:1, b:2]}";
  const auto expect = [&](const std::string& replication, const std::string& message) {
    const std::string report = reportOf(replication, cluster);
    EXPECT_NE(report.find(message), std::string::npos) << report;
  };
  expect("{topology: {hosts: sum}}", "'hosts: sum' needs 'mode: sync'");
  expect("{mode: bounded, staleness: 1, topology: {hosts: sum}}",
         "'hosts: sum' needs 'mode: sync'");
  expect("{mode: sync, replicas_to_aggregate: 1, topology: {hosts: sum}}",
         "needs the gradients of all 2 workers, one of each, and 'replicas_to_aggregate' is 1");
  expect("{mode: sync, replicas_to_aggregate: 4, topology: {hosts: sum}}",
         "'replicas_to_aggregate' is 4");
  expect("{mode: sync, transfer: {dtype: int8}, topology: {hosts: sum}}",
         "'hosts: sum' is for float32 in this version");
  expect("{mode: sync, topology: {hosts: some}}", "unknown hosts 'some'");
  expect("{mode: sync, topology: sum}", "topology");
  EXPECT_NE(reportOf("{topology: {hosts: sum}}", "{worker: [local]}")
                .find("needs several workers, and the job is one process"),
            std::string::npos);
  EXPECT_NE(reportOf("{mode: sync, topology: {hosts: sum}}", cluster + "\ntransport: rdma")
                .find("'transport: rdma' is not tested with 'topology'"),
            std::string::npos);
  EXPECT_NE(reportOf("{mode: sync, topology: {hosts: sum}}", cluster + "\nshared_memory: false")
                .find("sums gradients in shared memory: leave out one of them"),
            std::string::npos);
}

}  // namespace dtf::cluster
