#include "common/wire/network_probe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/net/connector.h"
#include "common/net/message_stream.h"
#include "common/wire/probe.capnp.h"

namespace dtf::wire {
namespace {

using ::testing::HasSubstr;

class NetworkProbeTest : public ::testing::Test {
 protected:
  ~NetworkProbeTest() noexcept override {}

  cluster::Address there() const {
    cluster::Address address;
    EXPECT_EQ(cluster::parseAddress(server_.listening(), address), "");
    return address;
  }
  Error errorOf(const ProbeTarget& target, Duration within = kProbeWithin) {
    try {
      io_.call([&] { return measureLink(io_, target, {.within = within}); });
    } catch (const Error& error) {
      return error;
    }
    ADD_FAILURE() << "it was measured";
    return {ErrorCode::kInternal, ""};
  }

  net::IoThread taking_{"taking"};
  ProbeServer server_{taking_, "here", "127.0.0.1", net::Credentials()};
  net::IoThread io_{"sending"};
};

TEST_F(NetworkProbeTest, RoundTripsAndBytesAreCounted) {
  const TimePoint begin = io_.clock().now();
  const LinkFigures figures = io_.call([&] { return measureLink(io_, {there(), "here"}); });
  const double seconds = toSeconds(io_.clock().now() - begin);
  EXPECT_GT(figures.bytes_per_second, 10e6);
  EXPECT_LT(figures.bytes_per_second * toSeconds(kProbeStreams) / 4, kProbeBytesMax);
  EXPECT_GT(figures.round_trip_us, 1);
  EXPECT_LT(figures.round_trip_us, 1e5);
  EXPECT_LT(seconds, toSeconds(kProbeWithin));
}

TEST_F(NetworkProbeTest, SomebodyElseWhoAnswersIsNoMeasurement) {
  const Error error = errorOf({there(), "elsewhere"});
  EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
  EXPECT_THAT(error.message(), HasSubstr("another machine has 127.0.0.1:"));
}

// A listener that never accepts stands for a frozen host.
TEST_F(NetworkProbeTest, WhoDoesNotAnswerIsNamedAtTheDeadline) {
  net::asio::io_context ioc;
  net::asio::ip::tcp::acceptor silent(ioc, {net::asio::ip::make_address("127.0.0.1"), 0});
  const Error error =
      errorOf({{"127.0.0.1", silent.local_endpoint().port()}, "here"}, std::chrono::seconds(1));
  EXPECT_EQ(error.code(), ErrorCode::kDeadline);
  EXPECT_THAT(error.message(), HasSubstr("waited 1 s for 127.0.0.1:"));
}

// The next connection is served.
TEST_F(NetworkProbeTest, AMessageOfMoreThanAPieceIsRefused) {
  const auto flood = [&]() -> kj::Promise<void> {
    return io_
        .connect(there().host, there().port, {.deadline = kProbeConnectWithin}, net::Limits{},
                 net::BufferPool::create(0))
        .then([](kj::Own<net::MessageStream> stream) {
          auto connection = kj::heap<net::RpcConnection>(kj::mv(stream), net::RpcOptions{});
          auto probe = connection->bootstrap().castAs<schema::NetworkProbe>();
          auto request = probe.takeRequest();
          request.initBytes(2 << 20);
          return request.send().ignoreResult().attach(kj::mv(connection));
        });
  };
  EXPECT_THROW(io_.call(flood), Error) << "a message of more than 1 MiB";
  EXPECT_GT(io_.call([&] { return measureLink(io_, {there(), "here"}); }).bytes_per_second, 0);
}

}  // namespace
}  // namespace dtf::wire
