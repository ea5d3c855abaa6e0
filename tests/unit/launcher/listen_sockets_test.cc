#include "launcher/listen_sockets.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <set>

#include "common/base/error.h"

namespace dtf::launcher {

namespace {

cluster::ClusterSpec autoPs(size_t count, const std::string& host = "localhost") {
  cluster::ClusterSpec cluster;
  for (size_t i = 0; i < count; ++i) {
    cluster.ps.emplace_back();
    cluster.ps.back().address = {host, 0};
    cluster.ps.back().mark = {"c.yaml", 3, 7};
  }
  return cluster;
}

ListenSockets open(const cluster::ClusterSpec& cluster, bool auto_only = false) {
  return ListenSockets::open(specsOf(cluster), cluster.mayBeReached(), auto_only);
}

constexpr TaskId kPs0{JobKind::kPs, 0};

std::string messageOf(const cluster::ClusterSpec& cluster, ErrorCode code) {
  try {
    open(cluster);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code);
    return error.message();
  }
  ADD_FAILURE() << "must throw";
  return "";
}

}  // namespace

// 192.0.2.1 is an address for examples (RFC 5737) that no host has.
TEST(ListenSockets, AHostIsThisOneWhenItsAddressCanBeBound) {
  for (const char* here : {"localhost", "127.0.0.1", "127.1.2.3"})
    EXPECT_TRUE(isThisHost(here)) << here;
  for (const char* elsewhere : {"192.0.2.1", "no-such-host.invalid"})
    EXPECT_FALSE(isThisHost(elsewhere)) << elsewhere;
}

TEST(ListenSockets, AutomaticPortsDiffer) {
  const ListenSockets first = open(autoPs(50)), second = open(autoPs(50));
  std::set<std::string> addresses;
  for (const ListenSockets* sockets : {&first, &second})
    for (const auto& [id, address] : sockets->chosen()) addresses.insert(address);
  EXPECT_EQ(addresses.size(), 100u);
  EXPECT_THAT(*addresses.begin(), ::testing::StartsWith("127.0.0.1:"));
}

TEST(ListenSockets, EveryProcessOfATaskGetsACopyAndThePortStaysUntilItIsDropped) {
  cluster::ClusterSpec fixed = autoPs(1);
  ListenSockets sockets = open(fixed);
  const std::string& address = sockets.chosen().at(kPs0);
  fixed.ps[0].address.port =
      static_cast<uint16_t>(std::stoi(address.substr(address.find(':') + 1)));
  for (int process = 0; process < 2; ++process) {
    const Fd socket = sockets.copyFor(kPs0);
    ASSERT_TRUE(socket.valid());
    EXPECT_EQ(::fcntl(socket.get(), F_GETFD), FD_CLOEXEC);
  }
  EXPECT_THROW(open(fixed), Error) << "it is still the launcher's";
  sockets.drop(kPs0);
  EXPECT_NO_THROW(open(fixed));
}

// For example, an agent was killed, and the next one gets the port that the first had chosen.
TEST(ListenSockets, AChosenPortIsTakenAgainWhileOldConnectionsLinger) {
  cluster::ClusterSpec fixed = autoPs(1);
  {
    const ListenSockets first = open(fixed);
    const std::string& address = first.chosen().at(kPs0);
    fixed.ps[0].address.port =
        static_cast<uint16_t>(std::stoi(address.substr(address.find(':') + 1)));
    sockaddr_in there{};
    there.sin_family = AF_INET;
    there.sin_port = htons(fixed.ps[0].address.port);
    there.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const Fd client(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(::connect(client.get(), reinterpret_cast<sockaddr*>(&there), sizeof there), 0);
    const Fd listening = first.copyFor(kPs0);
    Fd accepted(::accept4(listening.get(), nullptr, nullptr, SOCK_CLOEXEC));
    ASSERT_TRUE(accepted.valid());
    accepted = Fd();  // the end that closes first lingers
    char byte;
    ASSERT_EQ(::read(client.get(), &byte, 1), 0);
  }
  EXPECT_NO_THROW(open(fixed));
}

TEST(ListenSockets, FixedPortInUseIsNamedWithItsPlaceAndFreeAfterwards) {
  cluster::ClusterSpec fixed = autoPs(1);
  {
    const ListenSockets first = open(autoPs(1));
    const std::string& address = first.chosen().at(kPs0);
    fixed.ps[0].address.port =
        static_cast<uint16_t>(std::stoi(address.substr(address.find(':') + 1)));
    EXPECT_THAT(
        messageOf(fixed, ErrorCode::kUnavailable),
        ::testing::StartsWith("c.yaml:3:7: error: port " +
                              std::to_string(fixed.ps[0].address.port) + " of ps/0 is in use"));
    EXPECT_TRUE(open(fixed, true).chosen().empty()) << "a dry run leaves fixed ports alone";
  }
  EXPECT_TRUE(open(fixed).copyFor(kPs0).valid());
}

TEST(ListenSockets, AddressThatTheNetworkCanReachIsRefused) {
  EXPECT_THAT(messageOf(autoPs(1, "0.0.0.0"), ErrorCode::kBadConfig),
              ::testing::HasSubstr("loopback"));
  EXPECT_THAT(messageOf(autoPs(1, "192.0.2.1"), ErrorCode::kBadConfig),
              ::testing::HasSubstr("'192.0.2.1' of ps/0"));
}

TEST(ListenSockets, InsecureOrKeysAllowEveryAddressOfThisHost) {
  cluster::ClusterSpec cluster = autoPs(1, "0.0.0.0");
  cluster.insecure = true;
  EXPECT_TRUE(open(cluster).copyFor(kPs0).valid());
  cluster.insecure = false;
  cluster.keys = "keys";
  EXPECT_TRUE(open(cluster).copyFor(kPs0).valid());
  cluster = autoPs(1, "192.0.2.1");
  cluster.insecure = true;
  EXPECT_THAT(messageOf(cluster, ErrorCode::kBadConfig),
              ::testing::HasSubstr("'192.0.2.1' of ps/0 is not this host"));
}

TEST(ListenSockets, HostThatCantBeResolvedIsNamed) {
  EXPECT_THAT(messageOf(autoPs(1, "no-such-host.invalid"), ErrorCode::kBadConfig),
              ::testing::StartsWith(
                  "c.yaml:3:7: error: cannot resolve the host 'no-such-host.invalid' of ps/0"));
}

}  // namespace dtf::launcher
