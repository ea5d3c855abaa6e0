#include "common/cluster/understood.h"

#include <gtest/gtest.h>

#include "common/cluster/cluster_yaml.h"
#include "tests/support/temporary_files.h"

namespace dtf::cluster {
namespace {

TEST(Understood, TheFileHasItsTrainFileItsOverridesAndItsDefaults) {
  const testing::TemporaryFiles files;
  files.write("t.yaml",
              "model: {input: {shape: [2]}, layers: [dense: {units: 1}], loss: mse}\n"
              "steps: 10\n");
  files.write("c.yaml",
              "cluster: {ps: [a:1], worker: [{address: 'b:1', env: {TOKEN: hunter2}}]}\n"
              "train: t.yaml\n");
  const std::vector<std::string> overrides = {"train.steps=20"};
  const std::string text = loadCluster("c.yaml", overrides).text;
  for (const char* line :
       {"job: job\n", "run_dir: runs/job\n", "  steps: 20\n",
        "  data: {batch_size: 100, seed: 1}\n", "  optimizer: gradient_descent\n", "gather: true",
        "  lease_seconds: 10\n", "TOKEN: not-kept"})
    EXPECT_NE(text.find(line), std::string::npos) << line << "\n" << text;
  EXPECT_EQ(text.find("hunter2"), std::string::npos) << text;
  files.write("again.yaml", text);
  EXPECT_EQ(loadCluster("again.yaml", {}).text, text);
}

}  // namespace
}  // namespace dtf::cluster
