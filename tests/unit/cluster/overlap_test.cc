// train.replication.overlap, and the cluster that it needs.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "common/cluster/cluster_yaml.h"
#include "tests/support/temporary_files.h"
#include "tests/unit/cluster/bad_file.h"

namespace dtf::cluster {

using testing::badConfigOf;
using testing::TemporaryFiles;

TEST(Overlap, WithoutAPsNoGradientTravelsThatCouldBeOverlapped) {
  const TemporaryFiles files;
  constexpr std::string_view kTrain =
      "train:\n"
      "  model: {input: {shape: [2]}, layers: [relu], loss: mse}\n"
      "  replication: {overlap: true}\n";
  files.write("c.yaml", "cluster: {ps: [a:1], worker: [b:1]}\n" + std::string(kTrain));
  EXPECT_TRUE(loadCluster("c.yaml", {}).train->replication.overlap);
  const std::vector<std::string> off = {"train.replication.overlap=false"};
  EXPECT_FALSE(loadCluster("c.yaml", off).train->replication.overlap);
  for (const std::string_view cluster : {"cluster: {worker: [local]}\n", "job: x\n"}) {
    files.write("c.yaml", std::string(cluster) + std::string(kTrain));
    const std::string report = badConfigOf([] { loadCluster("c.yaml", {}); });
    EXPECT_NE(report.find("c.yaml:4:17: error: 'overlap' needs a ps, and the cluster has none: no "
                          "gradient travels"),
              std::string::npos)
        << report;
  }
}

}  // namespace dtf::cluster
