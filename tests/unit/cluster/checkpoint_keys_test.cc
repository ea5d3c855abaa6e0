#include <gtest/gtest.h>

#include "common/cluster/cluster_yaml.h"
#include "tests/support/temporary_files.h"

namespace dtf::cluster {
namespace {

TEST(CheckpointKeys, TheySayWhoHasTheFiles) {
  const testing::TemporaryFiles files;
  const auto read = [&files](const std::string& checkpoint) {
    files.write("c.yaml",
                "cluster: {ps: [a:1], worker: [b:1]}\n"
                "train:\n"
                "  model: {input: {shape: [2]}, layers: [dense: {units: 1}], loss: mse}\n"
                "  checkpoint: " +
                    checkpoint + "\n");
    return loadCluster("c.yaml", {}).train->checkpoint.value();
  };
  EXPECT_FALSE(read("{every_steps: 10}").gather);
  const CheckpointSpec gathers = read("{gather: true}");
  EXPECT_TRUE(gathers.gather);
  EXPECT_EQ(gathers.every_seconds, 600);
  EXPECT_EQ(gathers.mark.str(), "c.yaml:4:3") << "of the key";
  EXPECT_FALSE(gathers.stay);
  EXPECT_TRUE(read("{stay: true}").stay);
  EXPECT_TRUE(read("{gather: true, stay: false}").gather);
  try {
    read("{gather: true, stay: true}");
    ADD_FAILURE() << "it is read";
  } catch (const Error& error) {
    EXPECT_NE(error.message().find("c.yaml:4:36: error: 'gather' and 'stay' can't both be true"),
              std::string::npos)
        << error.message();
  }
}

}  // namespace
}  // namespace dtf::cluster
