#include "common/cluster/address.h"

#include <gtest/gtest.h>

namespace dtf::cluster {

TEST(Address, ReadsAndWritesTheSameText) {
  for (const char* text : {"localhost:2222", "gpu-1.example.com:1", "10.0.0.1:65535", "[::1]:2222",
                           "[fe80::1%eth0]:80", "localhost:auto", "[::1]:auto"}) {
    Address address;
    EXPECT_EQ(parseAddress(text, address), "") << text;
    EXPECT_EQ(address.str(), text);
  }
}

TEST(Address, RefusesEverythingElseAndKeepsTheOldValue) {
  for (const char* text :
       {"", ":", "localhost", "localhost:", ":2222", "localhost:0", "localhost:65536",
        "localhost:-1", "localhost:22x", "localhost: 22", "local host:22", "::1:2222", "[::1:2222",
        "[localhost]:22", "[]:22", "a/b:22", "localhost:99999999999999999999", "localhost:Auto"}) {
    Address address{"kept", 7};
    EXPECT_NE(parseAddress(text, address), "") << text;
    EXPECT_EQ(address.str(), "kept:7") << text;
  }
  Address address;
  EXPECT_NE(parseAddress(std::string(254, 'a') + ":1", address), "");
}

TEST(Address, BindKeyFoldsLoopbackAndCase) {
  EXPECT_EQ(bindKey({"127.0.0.1", 5}), bindKey({"LocalHost", 5}));
  EXPECT_NE(bindKey({"a", 5}), bindKey({"a", 6}));
  EXPECT_EQ(bindKey({"a", 0}), "");
}

TEST(Address, LoopbackIsWhatOnlyThisHostReaches) {
  for (const char* host : {"127.0.0.1", "127.1.2.3", "::1", "::ffff:127.0.0.1"})
    EXPECT_TRUE(isLoopback(host)) << host;
  for (const char* host :
       {"0.0.0.0", "::", "10.0.0.1", "192.0.2.127", "::ffff:10.0.0.1", "fe80::1"})
    EXPECT_FALSE(isLoopback(host)) << host;
  EXPECT_NE(refusalToListen("0.0.0.0:1").find("0.0.0.0:1"), std::string::npos);
}

}  // namespace dtf::cluster
