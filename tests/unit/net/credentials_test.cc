#include "common/net/credentials.h"

#include <gmock/gmock.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>

#include "common/net/connector.h"
#include "common/net/listener.h"
#include "common/net/own_user.h"
#include "tests/support/loopback.h"
#include "tests/unit/net/net_fixture.h"

namespace dtf::net::testing {
namespace {

// Forbids AF_NETLINK sockets from here on, as some sandboxes do, and units whose
// RestrictAddressFamilies= lacks AF_NETLINK.
bool forbidNetlink() {
  sock_filter rules[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_NETLINK, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EAFNOSUPPORT),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{std::size(rules), rules};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

TEST(Credentials, AreForTheOwnUserUnlessAnOwnerSaysOtherwise) {
  EXPECT_TRUE(Credentials().isOwnUserOnly());
  EXPECT_TRUE(ConnectOptions().credentials.isOwnUserOnly());
  EXPECT_TRUE(ListenerOptions().credentials.isOwnUserOnly());
  EXPECT_EQ(Credentials().keys(), nullptr);
  EXPECT_FALSE(Credentials::insecure().isOwnUserOnly());
}

// A default that can't be enforced is no reason to let others in.
TEST(Credentials, OfTheOwnUserRefuseAllWhereTheKernelMayNotBeAsked) {
  GTEST_FLAG_SET(death_test_style,
                 "threadsafe");  // the child has no socket of this thread to reuse
  const auto in_a_sandbox = [] {
    Reactor reactor;
    const Fd listening = dtf::testing::listenOnLoopback();
    const uint16_t port = dtf::testing::portOf(listening);
    if (!forbidNetlink()) std::_Exit(2);
    const Error error = toError(
        failureOf(reactor, connectToPeer(reactor.port, "127.0.0.1", port, {.deadline = 200ms})));
    std::_Exit(error.code() == ErrorCode::kPermission ? 0 : 1);
  };
  EXPECT_EXIT(in_a_sandbox(), ::testing::ExitedWithCode(0), "");
}

TEST(Credentials, WhereTheKernelMayNotBeAskedThatIsSaidAndAllAreLetIn) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // as above
  const auto in_a_sandbox = [] {
    if (!forbidNetlink()) std::_Exit(2);
    const bool knows = whyOwnersAreUnknown().empty();
    std::_Exit(Credentials::ownUser().isOwnUserOnly() || knows ? 1 : 0);
  };
  EXPECT_EXIT(in_a_sandbox(), ::testing::ExitedWithCode(0),
              "event=loopback_open reason=.*every user of this host may connect");
}

TEST(Credentials, WhereItMayBeAskedNobodyIsToldOtherwise) {
  const auto as_usual = [] { std::_Exit(Credentials::ownUser().isOwnUserOnly() ? 0 : 1); };
  EXPECT_EXIT(as_usual(), ::testing::ExitedWithCode(0), "^$");
}

}  // namespace
}  // namespace dtf::net::testing
