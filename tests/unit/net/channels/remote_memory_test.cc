#include "common/net/channels/remote_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace dtf::net {
namespace {

using ::testing::HasSubstr;

// UCX reads card keys without a bound.
TEST(CardKey, EveryPartHasToBeWithinItsBytes) {
  const auto key = [](uint64_t map, std::vector<int> rest) {
    std::vector<std::byte> bytes(sizeof map);
    std::memcpy(bytes.data(), &map, sizeof map);
    for (const int each : rest) bytes.push_back(static_cast<std::byte>(each));
    return bytes;
  };
  EXPECT_EQ(cardKeyFault(key(0, {0})), "");
  EXPECT_EQ(cardKeyFault(key(1, {0, 2, 8, 9})), "");
  EXPECT_EQ(cardKeyFault(key(3, {0, 2, 8, 9, 0})), "");
  EXPECT_THAT(cardKeyFault(key(1, {0})), HasSubstr("it ends within a part"));
  EXPECT_THAT(cardKeyFault(key(1, {0, 3, 8, 9})), HasSubstr("it ends within a part"));
  EXPECT_THAT(cardKeyFault(key(~uint64_t{0}, {0, 1, 1})), HasSubstr("it ends within a part"));
  EXPECT_THAT(cardKeyFault(key(1, {1, 0})), HasSubstr("no host's"));
  EXPECT_THAT(cardKeyFault({}), HasSubstr("it has 0 bytes"));
  EXPECT_THAT(cardKeyFault(std::vector<std::byte>(kCardKeyBytesMax + 1)), HasSubstr("4097 bytes"));
}

// The text of UCX 1.13.
TEST(RemoteTransports, AreReadFromTheLanesOfAnEndpoint) {
  EXPECT_EQ(
      transportsIn("#\n# UCP endpoint \n#\n"
                   "#               peer: <no debug data>\n"
                   "#                 lane[0]:  4:rc_mlx5/mlx5_0:1.0 md[2]  -> md[2]/ib am\n"
                   "#                 lane[1]:  4:rc_mlx5/mlx5_0:1.1 md[2]  -> md[2]/ib\n"
                   "#                 lane[2]:  1:tcp/lo.0 md[1]  -> md[1]/tcp/sysdev[255]\n"),
      "rc_mlx5/mlx5_0:1, tcp/lo");
  EXPECT_EQ(transportsIn("# lane[0]: none"), "");
  EXPECT_EQ(transportsIn(""), "");
}

TEST(RemoteTransports, AreCardsIfEachOneIs) {
  EXPECT_TRUE(areCards("rc_mlx5/mlx5_0:1, ud_verbs/mlx5_0:1"));
  EXPECT_FALSE(areCards("rc_mlx5/mlx5_0:1, tcp/lo"));
  EXPECT_FALSE(areCards("tcp/lo"));
  EXPECT_FALSE(areCards(""));
}

}  // namespace
}  // namespace dtf::net
