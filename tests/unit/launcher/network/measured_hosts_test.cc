#include "launcher/network/measured_hosts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/error.h"
#include "common/cluster/cluster_yaml.h"

namespace dtf::launcher {
namespace {

cluster::JobSpec localJob(const std::string& ps) {
  yaml::Report report;
  return cluster::loadClusterText(
      "job.yaml",
      "job: j\ninsecure: true\ncluster: {ps: ['" + ps + "'], worker: ['localhost:auto']}\n",
      report);
}

// tests/e2e/network_test.cc has other hosts.
TEST(MeasuredHosts, ThisHostIsMeasuredFromItself) {
  const std::vector<NetworkRow> rows =
      measureHosts(localJob("localhost:auto"), {}, {}, NetworkScope::kLinks, true);
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_TRUE(rows[0].reached()) << rows[0].measured.problem;
  EXPECT_GT(rows[0].measured.bytes_per_second, 1e6);
}

TEST(MeasuredHosts, AnotherHostNeedsAnAgent) {
  try {
    measureHosts(localJob("192.0.2.7:1"), {}, {}, NetworkScope::kLinks, true);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBadConfig);
    EXPECT_THAT(error.message(), ::testing::HasSubstr("192.0.2.7 is not this host"));
  }
}

}  // namespace
}  // namespace dtf::launcher
