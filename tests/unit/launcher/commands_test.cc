#include "launcher/commands.h"

#include <gmock/gmock.h>

#include "common/base/cores.h"
#include "tests/unit/launcher/verb_fixture.h"

namespace dtf::launcher {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Threads = std::vector<int>;

class CommandsTest : public VerbTest {};

TEST_F(CommandsTest, EachWorkerHasTheThreadsOfTheFileOrItsShare) {
  cluster::ClusterSpec cluster;
  cluster.worker.resize(2);
  cluster.worker[0].address = {"a", 1};
  cluster.worker[1].address = {"b", 1};
  cluster.worker[0].threads = 3;
  cluster.worker[1].threads = 5;
  EXPECT_EQ(threadsOf(cluster), (Threads{3, 5}));
  const std::string cores = std::to_string(availableCores());
  EXPECT_EQ(threadsText(cluster),
            "workers compute on 3 to 5, as this host has " + cores + " cores");
  cluster.worker[0].threads = cluster.worker[1].threads = 0;
  EXPECT_EQ(threadsOf(cluster), Threads(2, availableCores())) << "each has its host alone";
  EXPECT_EQ(threadsText(cluster),
            "each worker computes on " + cores + ", as this host has " + cores + " cores");
}

TEST_F(CommandsTest, TowersShareTheBatchAndTheThreadsOfTheirWorker) {
  EXPECT_EQ(towersText(job_, 0), "") << "one device is no tower";
  job_.cluster.worker[0].devices = {"cpu:0", "cpu:1"};
  job_.cluster.worker[0].threads = 2;
  EXPECT_EQ(devicesOf(job_.cluster), (std::vector<std::vector<std::string>>{{"cpu:0", "cpu:1"}}));
  EXPECT_EQ(towersText(job_, 0), "2 towers on cpu:0, cpu:1, each of 5 examples with 1 thread");
}

TEST_F(CommandsTest, ADryRunPrintsTheCommandsAndStartsNothing) {
  options_.dry_run = true;
  options_.bin_dir = folder_.path();
  for (const char* const name : {"psd", "workerd"})
    std::filesystem::permissions(folder_.write(name, "#!/bin/sh\n"),
                                 std::filesystem::perms::owner_all);
  const std::string plan = printed([this] { return up(job_, options_, {}); });
  EXPECT_EQ(code_, 0);
  EXPECT_THAT(plan, HasSubstr(folder_.path() + "/workerd"));
  EXPECT_THAT(plan, HasSubstr("job.yaml"));
  EXPECT_FALSE(std::filesystem::exists(runDir()));
}

TEST_F(CommandsTest, ACheckSaysHowLargeTheJobIs) {
  const std::string text = printed([this] {
    return check(job_, {.parameters = 7850, .ps_bytes = {31400}}, {.train = 50, .eval = {}},
                 options_);
  });
  EXPECT_EQ(code_, 0);
  EXPECT_THAT(text, HasSubstr("trains on 50 examples, evaluates on data on other hosts"));
  EXPECT_THAT(text, HasSubstr("model: 7850 parameters"));
  EXPECT_THAT(text, HasSubstr("worker/0"));
  EXPECT_THAT(text, Not(HasSubstr("preparation")));
  EXPECT_THAT(printed([this] {
                return check(job_, {.parameters = 7850, .ps_bytes = {31400}},
                             {.train = 50, .prepared_by = 20}, options_);
              }),
              HasSubstr("preparation: of the checkpoint of step 20, with which the job goes on"));
}

}  // namespace
}  // namespace dtf::launcher
