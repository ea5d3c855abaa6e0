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

}  // namespace
}  // namespace dtf::net
