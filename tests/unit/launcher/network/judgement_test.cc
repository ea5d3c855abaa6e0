#include "launcher/network/judgement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dtf::launcher {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Rows = std::vector<NetworkRow>;

constexpr double kMega = 1e6;

NetworkRow rowAt(const std::string& from, const std::string& to, double megabytes) {
  return {from, to, "10.0.0." + to, "eth0", true, {0, megabytes * kMega, 50, {}}};
}
NetworkRow other(const std::string& from, const std::string& to, double megabytes) {
  return {from, to, "10.1.0." + to, "eth1", false, {0, megabytes * kMega, 50, {}}};
}
NetworkRow unreached(const std::string& from, const std::string& to, const std::string& address) {
  return {from, to, address, "eth0", true, {0, 0, 0, "no answer"}};
}

TEST(NetworkJudgement, AnEvenNetworkIsNoWarning) {
  EXPECT_THAT(networkWarnings({rowAt("1", "2", 100), rowAt("2", "1", 51), rowAt("1", "3", 99),
                               rowAt("3", "1", 60), rowAt("2", "3", 80), rowAt("3", "2", 70)}),
              IsEmpty());
  EXPECT_THAT(networkWarnings({rowAt("1", "1", 5000)}), IsEmpty());
  EXPECT_THAT(networkWarnings({}), IsEmpty());
}

TEST(NetworkJudgement, APairBelowHalfOfTheBestIsNamed) {
  EXPECT_THAT(networkWarnings({rowAt("1", "2", 100), rowAt("2", "1", 49), rowAt("1", "3", 99),
                               rowAt("3", "1", 60), rowAt("2", "3", 80), rowAt("3", "2", 70)}),
              ElementsAre("2 to 1 has 49.0 MB/s, less than half of the 100 from 1 to 2"));
}

TEST(NetworkJudgement, AHostThatIsSlowForAllIsOneWarningAWay) {
  EXPECT_THAT(
      networkWarnings({rowAt("1", "2", 100), rowAt("2", "1", 100), rowAt("1", "3", 10),
                       rowAt("3", "1", 12), rowAt("2", "3", 11), rowAt("3", "2", 9)}),
      ElementsAre("all connections out of 3 are slow: 12.0 MB/s at most, and the best pair has 100",
                  "all connections into 3 are slow: 11.0 MB/s at most, and the best pair has 100"));
}

TEST(NetworkJudgement, AFasterInterfaceOfTheSameHostIsNamed) {
  EXPECT_THAT(networkWarnings({rowAt("1", "2", 10), other("1", "2", 100), rowAt("2", "1", 10),
                               other("2", "1", 14)}),
              ElementsAre(AllOf(HasSubstr("wrong network card? 2 is 10.0.0.2 on its eth0"),
                                HasSubstr("its eth1 with 10.1.0.2 is 10.0 times as fast"))));
}

// For example, the interface leads through another network from there.
TEST(NetworkJudgement, AnInterfaceThatIsSlowerFromSomewhereIsNotTheBetterOne) {
  EXPECT_THAT(networkWarnings({rowAt("1", "2", 60), other("1", "2", 100), rowAt("3", "2", 60),
                               other("3", "2", 20)}),
              IsEmpty());
  EXPECT_THAT(networkWarnings({rowAt("1", "1", 10), other("1", "1", 100)}), IsEmpty())
      << "a host reaches all of its own addresses through loopback";
}

TEST(NetworkJudgement, WhoIsNotReachedIsNamedAndOthersAreJudged) {
  const Rows rows = {rowAt("1", "2", 100), unreached("2", "1", "10.0.0.1"),
                     unreached("2", "3", "127.0.1.1"), unreached("1", "3", "127.0.1.1")};
  EXPECT_THAT(unreachedPairs(rows),
              ElementsAre("2 to 1: no answer", "2 to 3: no answer", "1 to 3: no answer"));
  EXPECT_THAT(
      networkWarnings(rows),
      ElementsAre(HasSubstr("3 resolves its own name to 127.0.1.1, which no other host reaches")));
}

TEST(NetworkJudgement, AnAddressThatIsReachedInsteadIsNamed) {
  EXPECT_THAT(unreachedPairs({unreached("2", "1", "10.0.0.1"), other("2", "1", 100),
                              other("3", "1", 100), rowAt("3", "1", 100)}),
              ElementsAre("2 to 1: no answer; it reaches 10.1.0.1 on its eth1"));
}

TEST(NetworkJudgement, AnotherAddressThatIsNotReachedIsNoFailure) {
  NetworkRow bridge = other("1", "2", 0);
  bridge.measured.problem = "another machine has it, too";
  EXPECT_THAT(unreachedPairs({rowAt("1", "2", 100), bridge}), IsEmpty());
  EXPECT_THAT(networkWarnings({rowAt("1", "2", 100), bridge}), IsEmpty());
}

}  // namespace
}  // namespace dtf::launcher
