#include "launcher/placement/step_cost.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "common/base/error.h"

namespace dtf::launcher {
namespace {

using ::testing::DoubleNear;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr double kFast = 100e6, kSlow = kFast / 10;

std::vector<HostLink> linksWith(const std::vector<double>& rates) {
  std::vector<HostLink> links;
  for (size_t i = 0; i < rates.size(); ++i)
    links.push_back({"h" + std::to_string(i), rates[i], rates[i], 100e-6});
  return links;
}

// `shards`: the host of each; the model has 12 MB.
StepBytes stepOf(std::vector<size_t> workers, const std::vector<size_t>& shards,
                 const std::vector<double>& shares) {
  StepBytes step{std::move(workers), {}};
  for (size_t i = 0; i < shards.size(); ++i)
    step.shards.push_back({shards[i], 12e6 * shares[i], 12e6 * shares[i], 0});
  return step;
}

double secondsOf(const std::vector<double>& rates, const std::vector<size_t>& workers,
                 const std::vector<size_t>& shards, const std::vector<double>& shares) {
  return costOf(stepOf(workers, shards, shares), linksWith(rates)).seconds;
}

// Each host sends and receives 2 (N-1) / N of the model.
TEST(StepCost, WorkersAloneMoveWhatARingMoves) {
  const ExchangeCost cost = costOf(stepOf({0, 1, 2, 3}, {0, 1, 2, 3}, std::vector<double>(4, 0.25)),
                                   linksWith(std::vector<double>(4, kFast)));
  EXPECT_NEAR(cost.busiest_sends, 1.5 * 12e6, 1);
  EXPECT_NEAR(cost.busiest_receives, 1.5 * 12e6, 1);
  EXPECT_NEAR(cost.seconds, 1.5 * 12e6 / kFast, 0.08 * 1.5 * 12e6 / kFast)
      << "the update and a round trip are more than that";
}

TEST(StepCost, NothingLeavesASingleHost) {
  const ExchangeCost cost = costOf(stepOf({0, 0}, {0, 0}, {0.5, 0.5}), linksWith({kFast}));
  EXPECT_EQ(cost.busiest, "");
  EXPECT_LT(cost.seconds, 0.02);
}

TEST(StepCost, AReplicaCostsEachHostItsShare) {
  StepBytes step = stepOf({0, 1}, {0, 1}, {0.5, 0.5});
  const double without = costOf(step, linksWith({kFast, kFast})).seconds;
  for (ShardBytes& shard : step.shards) shard.backed_up = shard.pushed;
  EXPECT_NEAR(costOf(step, linksWith({kFast, kFast})).seconds - without, 6e6 / kFast, 1e-6);
}

TEST(StepCost, TheSlowestLinkIsNamed) {
  EXPECT_EQ(
      costOf(stepOf({0, 1}, {2, 3}, {0.5, 0.5}), linksWith({kFast, kFast, kFast, kSlow})).busiest,
      "h3");
}

TEST(SharesByLink, EqualHostsGetEqualShares) {
  EXPECT_THAT(sharesByLink({0, 1, 2, 3}, {0, 1, 2, 3}, linksWith(std::vector<double>(4, kFast))),
              Each(DoubleNear(0.25, 1e-6)));
  EXPECT_THAT(sharesByLink({0, 1}, {2, 3}, linksWith(std::vector<double>(4, kFast))),
              Each(DoubleNear(0.5, 1e-6)));
  EXPECT_THAT(sharesByLink({0, 0}, {0, 0}, linksWith({kFast})), Each(0.5));
}

// Of hosts that only host shards.
TEST(SharesByLink, AreInProportionToWhatEachLinkCarries) {
  const std::vector<double> rates = {kFast, kFast, kFast, kSlow};
  const std::vector<double> shares = sharesByLink({0, 1}, {2, 3}, linksWith(rates));
  EXPECT_THAT(shares, ElementsAre(DoubleNear(10.0 / 11, 1e-6), DoubleNear(1.0 / 11, 1e-6)));
  EXPECT_LT(secondsOf(rates, {0, 1}, {2, 3}, shares),
            0.25 * secondsOf(rates, {0, 1}, {2, 3}, {0.5, 0.5}));
}

// It sends all of its gradient but its share, and its share of the others' parameters: with 1/N
// both are equal, whatever the other links carry.
TEST(SharesByLink, AWorkerBehindASlowLinkKeepsItsShare) {
  const std::vector<double> rates = {kFast, kFast, kFast, kSlow};
  const std::vector<size_t> hosts = {0, 1, 2, 3};
  const std::vector<double> shares = sharesByLink(hosts, hosts, linksWith(rates));
  EXPECT_NEAR(shares[3], 0.25, 1e-6);
  EXPECT_NEAR(std::accumulate(shares.begin(), shares.end(), 0.0), 1, 1e-6);
  const double best = secondsOf(rates, hosts, hosts, shares);
  EXPECT_LT(best, secondsOf(rates, hosts, hosts, {0.33, 0.33, 0.33, 0.01}));
  EXPECT_LT(best, secondsOf(rates, hosts, hosts, {0.2, 0.2, 0.2, 0.4}));
}

// Several shards of a host have its share together.
TEST(SharesByLink, ShardsOfOneHostDivideItsShare) {
  const std::vector<double> shares = sharesByLink({0}, {1, 1, 2}, linksWith({kFast, kFast, kFast}));
  EXPECT_NEAR(shares[0], shares[1], 1e-9);
  EXPECT_NEAR(shares[0] + shares[1] + shares[2], 1, 1e-6);
  EXPECT_NEAR(shares[2], 0.5, 0.01);
}

NetworkRow row(const std::string& from, const std::string& to, double rate, bool is_files = true) {
  return {from, to, "10.0.0.1", "eth0", is_files, {0, rate, 50, {}}};
}

TEST(LinksOf, TheBestFigureOfAHostIsItsOwn) {
  const std::vector<HostLink> links = linksOf(
      {"a", "b", "c"}, {row("a", "b", 90), row("b", "c", 10), row("c", "a", 9), row("a", "c", 11),
                        row("b", "a", 80), row("c", "b", 10), row("a", "b", 500, false)});
  EXPECT_EQ(links[0].out, 90);
  EXPECT_EQ(links[0].in, 80);
  EXPECT_EQ(links[2].out, 10);
  EXPECT_EQ(links[2].in, 11);
}

TEST(LinksOf, AHostWithoutFiguresIsNamedWithTheProblem) {
  NetworkRow lost = row("a", "b", 0);
  lost.measured.problem = "waited 3 s for a to measure it";
  try {
    linksOf({"a", "b"}, {lost});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
    EXPECT_THAT(error.message(), HasSubstr("the link of a can't be measured: waited 3 s"));
  }
}

}  // namespace
}  // namespace dtf::launcher
