#include "launcher/network/rounds.h"

#include <gtest/gtest.h>

#include <set>
#include <utility>

namespace dtf::launcher {
namespace {

TEST(Rounds, HaveEachPairOnceAndNoHostTwiceAtATime) {
  for (size_t hosts = 2; hosts <= 17; ++hosts) {
    std::set<std::pair<size_t, size_t>> all;
    for (const auto& round : roundsOf(hosts)) {
      std::set<size_t> busy;
      for (const HostPair& pair : round) {
        EXPECT_NE(pair.from, pair.to);
        EXPECT_TRUE(busy.insert(pair.from).second && busy.insert(pair.to).second) << hosts;
        EXPECT_TRUE(all.emplace(pair.from, pair.to).second) << hosts;
      }
      EXPECT_EQ(round.size(), hosts / 2) << "as many at a time as there can be";
    }
    EXPECT_EQ(all.size(), hosts * (hosts - 1));
  }
}

TEST(Rounds, OneHostIsMeasuredFromItself) {
  EXPECT_EQ(roundsOf(1), (std::vector<std::vector<HostPair>>{{{0, 0}}}));
}

TEST(LinkRounds, EachHostSendsAndReceivesOnceARound) {
  EXPECT_EQ(linkRoundsOf(1), roundsOf(1));
  EXPECT_EQ(linkRoundsOf(2).size(), 1u);
  for (const size_t hosts : {2, 3, 4, 9}) {
    for (const auto& round : linkRoundsOf(hosts)) {
      std::set<size_t> from, to;
      for (const HostPair& pair : round) {
        EXPECT_NE(pair.from, pair.to);
        EXPECT_TRUE(from.insert(pair.from).second);
        EXPECT_TRUE(to.insert(pair.to).second);
      }
      EXPECT_EQ(from.size(), hosts);
    }
  }
  EXPECT_NE(linkRoundsOf(3)[0], linkRoundsOf(3)[1]);
}

}  // namespace
}  // namespace dtf::launcher
