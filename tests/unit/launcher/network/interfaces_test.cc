#include "launcher/network/interfaces.h"

#include <gtest/gtest.h>

#include "common/cluster/address.h"

namespace dtf::launcher {
namespace {

TEST(Interfaces, OfLoopbackIsLo) {
  EXPECT_EQ(interfaceOf("127.0.0.1"), "lo");
  EXPECT_EQ(interfaceOf("127.0.0.7"), "lo");
  EXPECT_EQ(interfaceOf("203.0.113.9"), "");
}

TEST(Interfaces, TheOthersAreThoseThatOthersMayReach) {
  for (const InterfaceAddress& each : interfaceAddresses()) {
    EXPECT_FALSE(cluster::isLoopback(each.address));
    EXPECT_FALSE(each.address.starts_with("fe80:") || each.address.starts_with("169.254."));
    EXPECT_EQ(interfaceOf(each.address), each.interface);
  }
}

}  // namespace
}  // namespace dtf::launcher
