#include "launcher/network/network_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <set>

namespace dtf::launcher {
namespace {

using ::testing::HasSubstr;

// Hosts h0, h1, ... that reply in the next turn, except silent ones.
class NetworkCheckTest : public ::testing::Test {
 protected:
  struct Asked {
    std::string from;
    Measure order;
  };

  void make(size_t hosts, size_t addresses = 1, NetworkScope scope = NetworkScope::kAll) {
    std::vector<ProbeSite> sites;
    for (size_t i = 0; i < hosts; ++i) {
      const std::string name = "h" + std::to_string(i);
      ProbeSite site{name, "id" + name, "", {}, [this, name](const Measure& order) {
                       asked_.push_back({name, order});
                       under_way_.push_back({name, order});
                       most_at_once_ = std::max(most_at_once_, under_way_.size());
                     }};
      for (size_t k = 0; k < addresses; ++k)
        site.addresses.push_back({"10." + std::to_string(k) + ".0." + std::to_string(i),
                                  "eth" + std::to_string(k), static_cast<uint16_t>(1000 + k)});
      sites.push_back(std::move(site));
    }
    check_ = std::make_unique<NetworkCheck>(std::move(sites), clock_, scope);
  }

  std::vector<NetworkRow> run() {
    return check_->run(
        [this] {
          clock_.advance(std::chrono::milliseconds(100));
          for (const Asked& asked : std::exchange(under_way_, {})) {
            if (silent_.contains(asked.from)) continue;
            check_->answered(
                {asked.order.number, 1e6 * static_cast<double>(asked.order.number), 5, {}});
          }
          if (on_turn_) on_turn_();
        },
        [this](size_t done) { done_.push_back(done); });
  }

  ManualClock clock_;
  std::unique_ptr<NetworkCheck> check_;
  std::vector<Asked> asked_, under_way_;
  std::set<std::string> silent_;
  std::function<void()> on_turn_;
  std::vector<size_t> done_;
  size_t most_at_once_ = 0;
};

TEST_F(NetworkCheckTest, EachHostMeasuresEveryAddressOfEachOther) {
  make(3, 2);
  EXPECT_EQ(check_->measurements(), 12u);
  const auto rows = run();
  ASSERT_EQ(rows.size(), 12u);
  std::set<std::string> seen;
  for (const NetworkRow& row : rows) {
    EXPECT_TRUE(row.reached());
    EXPECT_EQ(row.is_files, row.address.starts_with("10.0."));
    EXPECT_TRUE(seen.insert(row.from + ">" + row.address).second);
  }
  EXPECT_EQ(rows[0].from, "h0");
  EXPECT_EQ(rows[0].to, "h1");
  EXPECT_EQ(most_at_once_, 1u) << "of three hosts one rests";
  EXPECT_EQ(done_.back(), 10u);
}

TEST_F(NetworkCheckTest, TheFilesAddressIsLookedForByItsNameAndOthersByTheirNumbers) {
  make(2, 2);
  run();
  ASSERT_EQ(asked_.size(), 4u);
  EXPECT_EQ(asked_[0].order.to.str(), "h1:1000");
  EXPECT_EQ(asked_[0].order.identity, "idh1");
  EXPECT_EQ(asked_[1].order.to.str(), "10.1.0.1:1001");
}

TEST_F(NetworkCheckTest, WhoDoesNotAnswerIsNamedAtTheDeadlineAndTheOthersGoOn) {
  make(4);
  silent_ = {"h2"};
  const TimePoint begin = clock_.now();
  const auto rows = run();
  ASSERT_EQ(rows.size(), 12u);
  for (const NetworkRow& row : rows) {
    EXPECT_EQ(row.reached(), row.from != "h2") << row.from << row.to;
    if (!row.reached()) {
      EXPECT_EQ(row.measured.problem, "waited 10 s for h2 to measure it");
    }
  }
  EXPECT_LT(clock_.now() - begin, 3 * NetworkCheck::kAnswerWithin + std::chrono::seconds(2));
}

// All at the same time, briefly, at the address of the file.
TEST_F(NetworkCheckTest, LinksAreMeasuredInTwoRounds) {
  make(4, 2, NetworkScope::kLinks);
  silent_ = {"h3"};
  const TimePoint begin = clock_.now();
  const auto rows = run();
  EXPECT_EQ(rows.size(), 8u);
  EXPECT_EQ(most_at_once_, 4u);
  for (const Asked& asked : asked_) EXPECT_TRUE(asked.order.is_brief);
  for (const NetworkRow& row : rows) {
    EXPECT_TRUE(row.is_files);
    EXPECT_EQ(row.reached(), row.from != "h3");
  }
  EXPECT_LT(clock_.now() - begin, 2 * NetworkCheck::kBriefAnswerWithin + std::chrono::seconds(1));
}

TEST_F(NetworkCheckTest, AHostThatIsLostCostsNoMoreTime) {
  make(3);
  on_turn_ = [this] {
    on_turn_ = nullptr;
    check_->lost("h1", "h1: its agent is gone");
  };
  const TimePoint begin = clock_.now();
  const auto rows = run();
  ASSERT_EQ(rows.size(), 6u);
  size_t lost = 0;
  for (const NetworkRow& row : rows)
    if (!row.reached()) {
      ++lost;
      EXPECT_TRUE(row.from == "h1" || row.to == "h1");
      EXPECT_EQ(row.measured.problem, "h1: its agent is gone");
    }
  EXPECT_GE(lost, 3u);
  EXPECT_LT(clock_.now() - begin, std::chrono::seconds(2));
}

TEST_F(NetworkCheckTest, AnAnswerThatNobodyWaitsForIsDropped) {
  make(2);
  on_turn_ = [this] { check_->answered({1, 7e6, 1, {}}); };
  for (const NetworkRow& row : run()) EXPECT_NE(row.measured.bytes_per_second, 7e6);
}

}  // namespace
}  // namespace dtf::launcher
