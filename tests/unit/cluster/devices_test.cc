// The devices of a worker, checked with the job's other settings.

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"
#include "common/cluster/cluster_yaml.h"
#include "tests/support/temporary_files.h"

namespace dtf::cluster {
namespace {

using testing::TemporaryFiles;

TEST(Devices, ABatchIsSharedOutEvenlyAmongTheDevicesOfEachWorker) {
  const TemporaryFiles files;
  const auto mistake = [&files](std::string_view data, const std::vector<std::string>& overrides) {
    files.write("c.yaml",
                "cluster:\n  ps: [a:1]\n"
                "  worker: [b:1, {address: c:1, devices: [cpu:0, cpu:1, cpu:2]}]\n"
                "train:\n  model: {input: {shape: [2]}, layers: [dense: {units: 2}], "
                "loss: mse}\n" +
                    std::string(data));
    try {
      loadCluster("c.yaml", overrides);
      return std::string();
    } catch (const Error& error) {
      return error.message().substr(0, error.message().find('\n'));
    }
  };
  constexpr std::string_view kReason =
      "among the 3 devices of worker/1: choose a batch_size of 99 or 102, or other devices";
  // The error points at the batch size, or at the devices if the size isn't in the file.
  EXPECT_EQ(mistake("  data: {batch_size: 100}\n", {}),
            "c.yaml:6:22: error: a batch of 100 examples can't be shared out evenly " +
                std::string(kReason));
  EXPECT_EQ(mistake("", {}),
            "c.yaml:3:17: error: a batch of 100 examples can't be shared out evenly " +
                std::string(kReason));
  EXPECT_NE(mistake("", {"train.data.batch_size=2"}).find("choose a batch_size of 3, or other"),
            std::string::npos);
  EXPECT_EQ(mistake("  data: {batch_size: 102}\n", {}), "");
}

}  // namespace
}  // namespace dtf::cluster
