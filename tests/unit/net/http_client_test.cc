#include "common/net/http_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/error.h"
#include "tests/support/http_collector.h"
#include "tests/support/loopback.h"

namespace dtf::net {
namespace {

using dtf::testing::HttpCollector;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr Duration kWithin = std::chrono::seconds(10);

Error errorOf(const HttpTarget& target, Duration within) {
  try {
    httpPost(target, "text/plain", "x", within);
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "it was answered";
  return {ErrorCode::kInternal, ""};
}

TEST(HttpClient, SendsABodyAndGivesTheAnswer) {
  const HttpCollector collector(
      "HTTP/1.1 202 Accepted\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}");
  const HttpReply reply =
      httpPost({"127.0.0.1", collector.port(), "/v1/traces"}, "application/json", "[1,2]", kWithin);
  EXPECT_EQ(reply.status, 202);
  EXPECT_EQ(reply.body, "{}");
  ASSERT_EQ(collector.requests().size(), 1u);
  const std::string request = collector.requests()[0];
  EXPECT_THAT(request, StartsWith("POST /v1/traces HTTP/1.1\r\n"));
  EXPECT_THAT(request, HasSubstr("Content-Type: application/json\r\n"));
  EXPECT_THAT(request, HasSubstr("Host: 127.0.0.1:" + std::to_string(collector.port()) + "\r\n"));
  EXPECT_TRUE(request.ends_with("\r\n\r\n[1,2]"));
}

TEST(HttpClient, AnAnswerWithoutALengthEndsWithItsConnection) {
  const HttpCollector collector("HTTP/1.1 200 OK\r\n\r\nall of it");
  EXPECT_EQ(httpPost({"localhost", collector.port(), "/"}, "a/b", "", kWithin).body, "all of it");
}

TEST(HttpClient, WhoDoesNotAnswerIsNamedAtTheDeadline) {
  const HttpCollector collector("");
  const Error error = errorOf({"127.0.0.1", collector.port(), "/"}, std::chrono::seconds(2));
  EXPECT_EQ(error.code(), ErrorCode::kDeadline);
  EXPECT_EQ(error.message(),
            "waited 2 s for 127.0.0.1:" + std::to_string(collector.port()) + " to answer");
}

TEST(HttpClient, NobodyThereAndNoHttpAreErrors) {
  uint16_t port = 0;
  {
    const Fd gone = dtf::testing::listenOnLoopback();
    port = dtf::testing::portOf(gone);
  }
  EXPECT_EQ(errorOf({"127.0.0.1", port, "/"}, kWithin).code(), ErrorCode::kUnavailable);
  EXPECT_THAT(errorOf({"::1", port, "/"}, kWithin).message(),
              StartsWith("[::1]:" + std::to_string(port) + " accepts no connection"));
  for (const std::string& answer :
       {std::string("SSH-2.0-x\r\n"),
        std::string("HTTP/1.1 200 OK\r\nContent-Length: 70000\r\n\r\n") +
            std::string(70000, 'x')}) {
    const HttpCollector collector(answer);
    const Error error = errorOf({"127.0.0.1", collector.port(), "/"}, kWithin);
    EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
    EXPECT_THAT(error.message(), HasSubstr("doesn't answer as HTTP does")) << answer.substr(0, 40);
  }
}

}  // namespace
}  // namespace dtf::net
