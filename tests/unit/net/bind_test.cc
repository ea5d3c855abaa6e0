#include "common/net/bind.h"

#include <fcntl.h>
#include <gmock/gmock.h>

#include "tests/unit/net/listener_fixture.h"

namespace dtf::net::testing {
namespace {

using ::testing::HasSubstr;

class BindTest : public ListenerTest {
 protected:
  ~BindTest() noexcept override {}  // gtest's may not throw, kj's may
};

TEST_F(BindTest, PortZeroIsOneThatTheKernelChooses) {
  auto first = bindAndListen(reactor_.port, "127.0.0.1", 0);
  const auto second = bindAndListen(reactor_.port, "localhost", 0);
  EXPECT_NE(first.local_endpoint().port(), 0);
  EXPECT_NE(first.local_endpoint().port(), second.local_endpoint().port());
  EXPECT_EQ(second.local_endpoint().address(), asio::ip::address_v4::loopback());
  EXPECT_NE(::fcntl(static_cast<int>(first.native_handle()), F_GETFD) & FD_CLOEXEC, 0)
      << "a process that is started does not inherit it";
}

TEST_F(BindTest, ANameThatNobodyKnowsIsABadConfiguration) {
  try {
    bindAndListen(reactor_.port, "no-such-host.invalid", 0);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBadConfig);
    EXPECT_THAT(error.message(), HasSubstr("the host name can't be resolved"));
  }
}

TEST_F(BindTest, ABindErrorNamesTheHolder) {
  Listener holder(reactor_.port, "127.0.0.1", 0, collect());
  try {
    Listener second(reactor_.port, "127.0.0.1", holder.port(), collect());
    FAIL() << "bound twice";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
    EXPECT_THAT(error.message(),
                HasSubstr("cannot listen on 127.0.0.1:" + std::to_string(holder.port()) +
                          ": the port is in use by pid " + std::to_string(::getpid())));
  }
}

TEST_F(BindTest, AForeignAddressIsABadConfiguration) {
  try {
    Listener listener(reactor_.port, "192.0.2.1", 0, collect());  // TEST-NET-1: never ours
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBadConfig);
    EXPECT_THAT(error.message(), HasSubstr("192.0.2.1 is not an address of this machine"));
  }
}

}  // namespace
}  // namespace dtf::net::testing
