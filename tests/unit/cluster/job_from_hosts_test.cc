// Jobs that psd and workerd get as flags, without a cluster file.

#include <gtest/gtest.h>

#include "common/base/error.h"
#include "common/cluster/cluster_yaml.h"
#include "tests/support/temporary_files.h"

namespace dtf::cluster {
namespace {

using testing::badConfigOf;
using testing::TemporaryFiles;

constexpr const char* kTrainText =
    "model:\n"
    "  input: {shape: [28, 28, 1]}\n"
    "  layers:\n"
    "    - flatten:\n"
    "    - dense: {units: 10, name: softmax}\n"
    "  loss: sparse_categorical_crossentropy\n";

TEST(JobFromHosts, IsTheSameJobAsAFile) {
  const TemporaryFiles files;
  files.write("t.yaml", kTrainText);
  const std::string overrides[] = {"train.steps=5", "job=flags", "timeouts.lease_seconds=20"};
  const JobSpec job = jobFromHosts("a:1,b:2", "c:3", "t.yaml", overrides);
  ASSERT_EQ(job.cluster.ps.size(), 2u);
  EXPECT_EQ(job.cluster.ps[1].address.str(), "b:2");
  EXPECT_EQ(job.cluster.worker.at(0).address.str(), "c:3");
  EXPECT_EQ(job.run_dir, "runs/flags");
  EXPECT_EQ(job.train.value().steps, 5u);
  EXPECT_EQ(job.timeouts.lease_seconds, 20);
  EXPECT_FALSE(jobFromHosts("a:1", "c:3", std::nullopt, {}).train);
}

TEST(JobFromHosts, NamesTheFlagThatIsWrong) {
  EXPECT_EQ(badConfigOf([] { jobFromHosts("a:1,,b", "a:1", std::nullopt, {}); }),
            "--ps-hosts a:1,,b: error: 'ps/1' is empty: write a text, or leave it out\n"
            "--ps-hosts a:1,,b: error: bad address 'b': an address is host:port\n"
            "--worker-hosts a:1: error: ps/0 and worker/0 are both at a:1");
  EXPECT_EQ(badConfigOf([] { jobFromHosts("a:1", "b:1", "none.yaml", {}); }),
            "--train none.yaml: error: cannot read none.yaml: No such file or directory (2)");
}

}  // namespace
}  // namespace dtf::cluster
