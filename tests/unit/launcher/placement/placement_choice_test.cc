#include "launcher/placement/placement_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/error.h"
#include "tests/support/temporary_files.h"
#include "tests/unit/launcher/placement/placement_fixture.h"

namespace dtf::launcher {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr double kRate = 100e6;

std::vector<HostLink> linksOfJob(const cluster::JobSpec& job, const std::string& slow = "") {
  std::vector<HostLink> links;
  for (const std::string& host : linkedHosts(job)) {
    const double rate = host == slow ? kRate / 10 : kRate;
    links.push_back({host, rate, rate, 100e-6});
  }
  return links;
}

std::string errorOf(const cluster::JobSpec& job) {
  try {
    choosePlacement(job, linksOfJob(job));
  } catch (const Error& error) {
    return error.message();
  }
  return "";
}

// Two workers send each other a half; two ps receive all from both.
TEST(PlacementChoice, WorkersThatMoveFewerBytesHostTheParameters) {
  const cluster::JobSpec job = jobOf(kApart, kSyncAuto);
  const PlacementChoice choice = choosePlacement(job, linksOfJob(job));
  EXPECT_EQ(choice.option().name, "workers");
  EXPECT_THAT(choice.option().overrides,
              ElementsAre("cluster.ps=[]", "train.placement={\"strategy\":\"even\"}"));
  // Not twice as fast: the mean gradient of a half also goes to the keeper of its replica.
  EXPECT_GT(choice.options[0].cost.seconds / choice.option().cost.seconds, 1.2);
  EXPECT_THAT(choiceText(choice), HasSubstr("workers, "));
  EXPECT_THAT(choiceText(choice), HasSubstr("; ps "));
}

// The links have the spelling of the ps, which the option "workers" doesn't have.
TEST(PlacementChoice, AHostMayBeSpeltInTwoWays) {
  const cluster::JobSpec job = jobOf(
      "{ps: ['127.0.0.1:2221', 'A:1'], worker: ['localhost:2222', 'localhost:2223', 'a:2222']}",
      kSyncAuto);
  const PlacementChoice choice = choosePlacement(job, linksOfJob(job));
  EXPECT_EQ(choice.links.size(), 2u);
  for (const size_t option : {0, 2})
    EXPECT_EQ(choice.options[option].why_not, "") << choice.options[option].name;
}

TEST(PlacementChoice, APsBehindASlowLinkGetsLess) {
  const cluster::JobSpec job =
      jobOf(kApart, "  replication: {mode: sync}\n  placement: {strategy: auto, among: [ps]}\n");
  const PlacementChoice choice = choosePlacement(job, linksOfJob(job, "10.0.0.2"));
  EXPECT_EQ(choice.option().name, "ps");
  ASSERT_EQ(choice.option().shares.size(), 2u);
  EXPECT_NEAR(choice.option().shares[0], 10.0 / 11, 1e-3);
  EXPECT_THAT(choice.option().overrides,
              ElementsAre("train.placement={\"strategy\":\"even\",\"shares\":[0.9091,0.0909]}"));
  EXPECT_THAT(choice.options[2].why_not, HasSubstr("among"));
  const PlacementChoice equal = choosePlacement(job, linksOfJob(job));
  EXPECT_THAT(equal.option().shares, IsEmpty()) << "equal links need no shares";
}

TEST(PlacementChoice, WorkersThatCannotHostAreLeftOutWithTheReason) {
  const std::string placed = "  placement: auto\n";
  const cluster::JobSpec async = jobOf(kApart, placed);
  const PlacementChoice choice = choosePlacement(async, linksOfJob(async));
  EXPECT_EQ(choice.option().name, "ps");
  EXPECT_THAT(choice.options[2].why_not, HasSubstr("mode: sync"));
  const cluster::JobSpec one = jobOf("{ps: ['10.0.0.1:1'], worker: ['10.0.0.3:1']}", kSyncAuto);
  EXPECT_THAT(choosePlacement(one, linksOfJob(one)).options[2].why_not, HasSubstr("one worker"));
  const cluster::JobSpec pinned =
      jobOf(kApart,
            "  replication: {mode: sync}\n  placement: {strategy: auto, pins: "
            "{dense/biases: '/job:ps/task:1'}, partition: none}\n");
  const PlacementChoice with_pins = choosePlacement(pinned, linksOfJob(pinned));
  EXPECT_THAT(with_pins.options[2].why_not, HasSubstr("pins"));
  EXPECT_THAT(with_pins.option().overrides,
              ElementsAre(HasSubstr("\"pins\":{\"dense/biases\":\"/job:ps/task:1\"},"
                                    "\"partition\":\"none\"")));
}

TEST(PlacementChoice, NothingToChooseFromIsAMistakeAtTheKey) {
  const std::string error =
      errorOf(jobOf(kApart, "  placement: {strategy: auto, among: [workers]}\n"));
  EXPECT_THAT(error, HasSubstr("job.yaml:"));
  EXPECT_THAT(error, HasSubstr("ps: 'among' leaves it out; hybrid: "));
  EXPECT_THAT(error, HasSubstr("; workers: only with 'mode: sync'"));
}

// Tables stay on the ps, which get shares of their own.
TEST(PlacementChoice, HybridIsAnOptionOfModelsWithTables) {
  const cluster::JobSpec dense = jobOf(kApart, kSyncAuto);
  EXPECT_EQ(choosePlacement(dense, linksOfJob(dense)).options[1].why_not,
            "the model has no sparse variable");
  yaml::Report report;
  const cluster::JobSpec job = cluster::loadClusterText(
      "job.yaml",
      std::string("job: j\ninsecure: true\ncluster: ") + kApart +
          "\ntrain:\n  model:\n    input: {shape: [4]}\n    layers:\n"
          "      - dense: {units: 8, name: numbers}\n"
          "      - embedding: {categories: user, input_dim: 1000, output_dim: 4096, combiner: sum, "
          "name: user}\n"
          "      - concatenate: {with: [numbers]}\n      - dense: {units: 1, name: click}\n"
          "    loss: binary_crossentropy\n"
          "  data: {train: {format: synthetic, problem: clicks, count: 100}, batch_size: 10}\n"
          "  optimizer: adam\n  replication: {mode: sync}\n"
          "  placement: {strategy: auto, among: [hybrid]}\n",
      report);
  const PlacementChoice choice = choosePlacement(job, linksOfJob(job, "10.0.0.2"));
  EXPECT_EQ(choice.option().name, "hybrid");
  ASSERT_EQ(choice.option().shares.size(), 4u);
  EXPECT_NEAR(choice.option().shares[0], 10.0 / 11, 1e-3);
  EXPECT_NEAR(choice.option().shares[2], 0.5, 1e-3);
  EXPECT_THAT(choice.option().overrides, ElementsAre(HasSubstr("{\"strategy\":\"hybrid\",")));
}

// What the overrides make of the file is what was chosen.
TEST(PlacementChoice, TheOverridesGiveTheJobItsPlacement) {
  const testing::TemporaryFiles folder;
  folder.write("job.yaml", jobText(kApart, kSyncAuto));
  const cluster::JobSpec job = cluster::loadCluster("job.yaml", {});
  const cluster::JobSpec chosen =
      cluster::loadCluster("job.yaml", choosePlacement(job, linksOfJob(job)).option().overrides);
  EXPECT_TRUE(chosen.cluster.workersHost());
  EXPECT_EQ(chosen.train->placement.strategy, cluster::PlacementSpec::Strategy::kEven);
}

}  // namespace
}  // namespace dtf::launcher
