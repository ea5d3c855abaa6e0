#include <gmock/gmock.h>

#include "tests/unit/launcher/verb_fixture.h"

namespace dtf::launcher {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class ExplainCommand : public VerbTest {
 protected:
  std::string explained() {
    return printed([this] { return explain(job_, options_); });
  }
};

TEST_F(ExplainCommand, ShowsLayersMemoryAndKernels) {
  EXPECT_THAT(
      explained(),
      AllOf(HasSubstr("softmax"), HasSubstr("7850"), HasSubstr("input scaling: features / 255"),
            HasSubstr("memory of a worker: "), HasSubstr("for a step of 10 examples"),
            HasSubstr("kernels of a step: "), HasSubstr("_FusedSoftmax")));
  EXPECT_EQ(code_, 0);
}

TEST_F(ExplainCommand, SaysWhatDurabilityCosts) {
  EXPECT_THAT(explained(), Not(HasSubstr("of replicas")));
  job_.durability.kind = cluster::Durability::kReplica;
  EXPECT_THAT(explained(), HasSubstr("of replicas"));
  job_.durability.kind = cluster::Durability::kSnapshot;
  EXPECT_THAT(explained(), HasSubstr("of two snapshots in /dev/shm"));
}

TEST_F(ExplainCommand, SaysHowEachShardIsExchangedAndWhyNotOtherwise) {
  job_.cluster.ps.resize(1);
  job_.cluster.ps[0].address = {"localhost", 1};
  job_.cluster.worker[0].address = {"localhost", 2};
  EXPECT_THAT(
      explained(),
      AllOf(HasSubstr("transfers of worker/0:\n  ps/0: parameters float32, in shared memory"),
            HasSubstr("no: 'replication.overlap' is false")));
  job_.train->replication.overlap = true;
  job_.cluster.ps.assign(3, job_.cluster.ps[0]);
  for (cluster::TaskSpec& ps : job_.cluster.ps) ps.address.host = "elsewhere";
  EXPECT_THAT(explained(),
              AllOf(HasSubstr("  ps/0, ps/1: parameters float32, in messages"),
                    HasSubstr("no: the tasks are on different hosts"),
                    ContainsRegex("    overlap +yes\n"), HasSubstr("no: the shard is empty")));
  options_.json = true;
  EXPECT_THAT(explained(), HasSubstr("\"why_not\":\"'replication.transfer_dtype' is float32\""));
}

TEST_F(ExplainCommand, SaysWhichWorkersOfAHostAreSummed) {
  job_.cluster.ps.resize(1);
  job_.cluster.ps[0].address = {"localhost", 1};
  job_.cluster.worker.assign(3, job_.cluster.worker[0]);
  for (cluster::TaskSpec& worker : job_.cluster.worker) worker.address = {"here", 2};
  job_.cluster.worker[1].address.host = "there";
  job_.train->replication.mode = cluster::ReplicationSpec::Mode::kSync;
  EXPECT_THAT(explained(), Not(HasSubstr("sums by host")));
  job_.train->replication.host_leaders = cluster::hostLeaders(job_.cluster);
  EXPECT_THAT(explained(),
              AllOf(HasSubstr("sums by host:\n  here: worker/0 exchanges the mean of worker/0, "
                              "worker/2\n  there: worker/1 is alone there, so the topology "
                              "changes nothing for it\n"),
                    ContainsRegex("    sum of the host +yes\n")));
}

TEST_F(ExplainCommand, TowersShareAStep) {
  job_.cluster.worker[0].devices = {"cpu:0", "cpu:1"};
  EXPECT_THAT(explained(), HasSubstr("worker/0: 2 towers on cpu:0, cpu:1, each of 5 examples"));
}

TEST_F(ExplainCommand, TheGraphOfAStepIsTextOrADrawing) {
  options_.parts = true;
  EXPECT_THAT(explained(), HasSubstr("softmax/MatMul"));
  options_.dot = true;
  EXPECT_THAT(explained(), StartsWith("digraph "));
}

}  // namespace
}  // namespace dtf::launcher
