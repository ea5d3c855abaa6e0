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

// The choice for the job of a text; `slow`: a host with a tenth of the others' rate.
PlacementChoice chosen(const std::string& text, const std::string& slow = "") {
  const cluster::JobSpec job = readerOf(text)({}).job.value();
  return choosePlacement(job, linksOfJob(job, slow), readerOf(text));
}

std::string errorOf(const std::string& text) {
  try {
    chosen(text);
  } catch (const Error& error) {
    return error.message();
  }
  return "";
}

// Two workers send each other a half; two ps receive all from both.
TEST(PlacementChoice, WorkersThatMoveFewerBytesHostTheParameters) {
  const PlacementChoice choice = chosen(jobText(kApart, kSyncAuto));
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
  const PlacementChoice choice = chosen(jobText(
      "{ps: ['127.0.0.1:2221', 'A:1'], worker: ['localhost:2222', 'localhost:2223', 'a:2222']}",
      kSyncAuto));
  EXPECT_EQ(choice.links.size(), 2u);
  for (const size_t option : {0, 2})
    EXPECT_EQ(choice.options[option].why_not, "") << choice.options[option].name;
}

TEST(PlacementChoice, APsBehindASlowLinkGetsLess) {
  const std::string text =
      jobText(kApart, "  replication: {mode: sync}\n  placement: {strategy: auto, among: [ps]}\n");
  const PlacementChoice choice = chosen(text, "10.0.0.2");
  EXPECT_EQ(choice.option().name, "ps");
  ASSERT_EQ(choice.option().shares.size(), 2u);
  EXPECT_NEAR(choice.option().shares[0], 10.0 / 11, 1e-3);
  EXPECT_THAT(choice.option().overrides,
              ElementsAre("train.placement={\"strategy\":\"even\",\"shares\":[0.9091,0.0909]}"));
  EXPECT_THAT(choice.options[2].why_not, HasSubstr("among"));
  const PlacementChoice equal = chosen(text);
  EXPECT_THAT(equal.option().shares, IsEmpty()) << "equal links need no shares";
}

TEST(PlacementChoice, WorkersThatCannotHostAreLeftOutWithTheReason) {
  const PlacementChoice choice = chosen(jobText(kApart, "  placement: auto\n"));
  EXPECT_EQ(choice.option().name, "ps");
  EXPECT_THAT(choice.options[2].why_not, HasSubstr("mode: sync"));
  const std::string one = jobText("{ps: ['10.0.0.1:1'], worker: ['10.0.0.3:1']}", kSyncAuto);
  EXPECT_THAT(chosen(one).options[2].why_not, HasSubstr("one worker"));
  const PlacementChoice with_pins =
      chosen(jobText(kApart,
                     "  replication: {mode: sync}\n  placement: {strategy: auto, pins: "
                     "{dense/biases: '/job:ps/task:1'}, partition: none}\n"));
  EXPECT_THAT(with_pins.options[2].why_not, HasSubstr("pins"));
  EXPECT_THAT(with_pins.option().overrides,
              ElementsAre(HasSubstr("\"pins\":{\"dense/biases\":\"/job:ps/task:1\"},"
                                    "\"partition\":\"none\"")));
}

TEST(PlacementChoice, NothingToChooseFromIsAMistakeAtTheKey) {
  const std::string error =
      errorOf(jobText(kApart, "  placement: {strategy: auto, among: [workers]}\n"));
  EXPECT_THAT(error, HasSubstr("job.yaml:"));
  EXPECT_THAT(error, HasSubstr("ps: 'among' leaves it out; hybrid: "));
  EXPECT_THAT(error, HasSubstr("; workers: only with 'mode: sync'"));
}

// A model with a table of `rows` rows.
std::string clicksText(int rows, int batch, const std::string& placement,
                       const std::string& more = "") {
  return std::string("job: j\ninsecure: true\ncluster: ") + kApart + "\n" + more +
         "train:\n  model:\n    input: {shape: [4]}\n    layers:\n"
         "      - dense: {units: 8, name: numbers}\n"
         "      - embedding: {categories: user, input_dim: " +
         std::to_string(rows) +
         ", output_dim: 4096, combiner: sum, name: user}\n"
         "      - concatenate: {with: [numbers]}\n      - dense: {units: 1, name: click}\n"
         "    loss: binary_crossentropy\n"
         "  data: {train: {format: synthetic, problem: clicks, count: 1000}, batch_size: " +
         std::to_string(batch) +
         "}\n  optimizer: adam\n  replication: {mode: sync}\n  placement: " + placement + "\n";
}

// Tables stay on the ps, which get shares of their own.
TEST(PlacementChoice, HybridIsAnOptionOfModelsWithTables) {
  EXPECT_EQ(chosen(jobText(kApart, kSyncAuto)).options[1].why_not,
            "the model has no sparse variable");
  const PlacementChoice choice =
      chosen(clicksText(1000, 10, "{strategy: auto, among: [hybrid]}"), "10.0.0.2");
  EXPECT_EQ(choice.option().name, "hybrid");
  ASSERT_EQ(choice.option().shares.size(), 4u);
  EXPECT_NEAR(choice.option().shares[0], 10.0 / 11, 1e-3);
  EXPECT_NEAR(choice.option().shares[2], 0.5, 1e-3);
  EXPECT_THAT(choice.option().overrides, ElementsAre(HasSubstr("{\"strategy\":\"hybrid\",")));
}

// What the overrides make of the file is what was chosen.
TEST(PlacementChoice, TheOverridesGiveTheJobItsPlacement) {
  const std::string text = jobText(kApart, kSyncAuto);
  const cluster::JobSpec job = readerOf(text)(chosen(text).option().overrides).job.value();
  EXPECT_TRUE(job.cluster.workersHost());
  EXPECT_EQ(job.train->placement.strategy, cluster::PlacementSpec::Strategy::kEven);
}

// The settings of a host without a task are a mistake in the file.
TEST(PlacementChoice, TheSettingsOfHostsWithoutWorkersGoWithThePs) {
  const std::string text = jobText(
      kApart, kSyncAuto,
      "launch: {via: ssh, hosts: [{host: 10.0.0.1, user: p}, {host: 10.0.0.3, port: 22, user: w, "
      "identity: keys/id, binary_dir: /opt/bin}]}\n");
  const PlacementChoice choice = chosen(text);
  ASSERT_EQ(choice.option().name, "workers") << choiceText(choice);
  const cluster::LaunchSpec before = readerOf(text)({}).job->launch;
  const cluster::LaunchSpec after = readerOf(text)(choice.option().overrides).job.value().launch;
  ASSERT_EQ(after.hosts.size(), 1u);
  const cluster::SshSpec& kept = after.sshOf("10.0.0.3");
  const cluster::SshSpec& given = before.sshOf("10.0.0.3");
  EXPECT_EQ(kept.user, "w");
  EXPECT_EQ(kept.port, 22);
  EXPECT_EQ(kept.identity, given.identity);
  EXPECT_EQ(kept.binary_dir, "/opt/bin");
}

TEST(PlacementChoice, AnOptionThatTheFileRefusesIsNotPossible) {
  const std::string text = jobText(kApart, kSyncAuto);
  const cluster::JobSpec job = readerOf(text)({}).job.value();
  const PlacementChoice choice = choosePlacement(
      job, linksOfJob(job), [&](const std::vector<std::string>& overrides) -> ReadJob {
        if (overrides[0] == "cluster.ps=[]") return {std::nullopt, "job.yaml:1:1: error: no room"};
        return readerOf(text)(overrides);
      });
  EXPECT_EQ(choice.option().name, "ps");
  EXPECT_EQ(choice.options[2].why_not,
            "the file with it has a mistake: job.yaml:1:1: error: no room");
  EXPECT_THAT(choice.options[2].overrides, IsEmpty());
}

// A pin of a file names the host, whichever shard that has.
TEST(PlacementChoice, APinToTheLeaderStaysThere) {
  const std::string text =
      jobText("{worker: ['10.0.0.1:1', '10.0.0.2:1']}",
              "  replication: {mode: sync, leader: worker/1}\n  placement: {strategy: auto, pins: "
              "{dense/biases: '/job:worker/task:1'}}\n");
  const cluster::PlacementSpec read =
      readerOf(text)(chosen(text).option().overrides).job.value().train->placement;
  EXPECT_EQ(read.pins, readerOf(text)({}).job.value().train->placement.pins);
  EXPECT_EQ(read.pins.at("dense/biases"), "/job:ps/task:0") << "the leader's shard";
}

// ---- the bytes of replicas

double workersSeconds(const std::string& text) {
  return chosen(text).options[2].cost.seconds;
}

// `durability: checkpoint` in the file is also that of the job without its ps.
TEST(PlacementChoice, ReplicasCostOnlyAJobThatKeepsThem) {
  const double with = workersSeconds(jobText(kApart, kSyncAuto));
  const double without = workersSeconds(jobText(kApart, kSyncAuto, "durability: checkpoint\n"));
  EXPECT_NEAR(with / without, 1.5, 0.05) << "a half of the parameters, three times or twice";
}

// A replica receives float32.
TEST(PlacementChoice, NarrowTransfersAreNotThoseOfReplicas) {
  const std::string narrow =
      "  replication: {mode: sync, transfer_dtype: bfloat16}\n  placement: auto\n";
  const double whole = workersSeconds(jobText(kApart, kSyncAuto));
  EXPECT_NEAR(workersSeconds(jobText(kApart, narrow)) / whole, 2.0 / 3, 0.03)
      << "two of the three phases take half as long";
}

// The mean gradient has the rows of all workers, but no more than the table has.
TEST(PlacementChoice, AReplicaReceivesTheRowsOfAllWorkers) {
  const auto ratio = [](int rows) {
    return workersSeconds(clicksText(rows, 1000, "auto")) /
           workersSeconds(clicksText(rows, 1000, "auto", "durability: checkpoint\n"));
  };
  EXPECT_NEAR(ratio(100000), 2, 0.1) << "2000 rows to the replica, 1000 to a host and back";
  EXPECT_NEAR(ratio(1000), 1.5, 0.1) << "the table has 1000 rows";
}

}  // namespace
}  // namespace dtf::launcher
