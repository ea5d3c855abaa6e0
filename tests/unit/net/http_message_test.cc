#include "common/net/http_message.h"

#include <gtest/gtest.h>

namespace dtf::net {
namespace {

HttpRequest requestOf(std::string_view text) {
  const HttpParsed parsed = parseHttpRequest(text);
  const auto* request = std::get_if<HttpRequest>(&parsed);
  EXPECT_NE(request, nullptr) << text;
  return request == nullptr ? HttpRequest{} : *request;
}

int refusalOf(std::string_view text) {
  const HttpParsed parsed = parseHttpRequest(text);
  const auto* refusal = std::get_if<HttpRefusal>(&parsed);
  EXPECT_TRUE(refusal == nullptr || !refusal->reason.empty());
  return refusal == nullptr ? 0 : refusal->status;
}

TEST(HttpMessage, ARequestHasAPathAndAHost) {
  const HttpRequest request =
      requestOf("GET /metrics HTTP/1.1\r\nUser-Agent: curl\r\nHost: Localhost:9400\r\n\r\n");
  EXPECT_EQ(request.path, "/metrics");
  EXPECT_EQ(request.host, "localhost");
  EXPECT_EQ(requestOf("GET /a?b=/c?d HTTP/1.1\r\nHost: [::1]:80\r\n\r\n").path, "/a");
  EXPECT_EQ(requestOf("GET / HTTP/1.1\r\nHost: [::1]:80\r\n\r\n").host, "::1");
  EXPECT_EQ(requestOf("GET / HTTP/1.1\r\nHost: 10.0.0.5\r\n\r\n").host, "10.0.0.5");
  EXPECT_EQ(requestOf("GET / HTTP/1.1\r\nHost:\r\n\r\n").host, "");
  EXPECT_EQ(requestOf("GET / HTTP/1.0\r\n\r\n").host, "");
}

TEST(HttpMessage, AnOriginIsTheHostOfAPage) {
  EXPECT_EQ(requestOf("GET /a HTTP/1.1\r\nHost: x\r\nOrigin: http://Gpu1:9400\r\n\r\n").origin,
            "http://Gpu1:9400");
  EXPECT_EQ(requestOf("GET /a HTTP/1.1\r\nHost: x\r\n\r\n").origin, "");
  EXPECT_EQ(originHost("http://Gpu1:9400"), "gpu1");
  EXPECT_EQ(originHost("http://[::1]:9400"), "::1");
  EXPECT_EQ(originHost("http://10.0.0.5"), "10.0.0.5");
  EXPECT_EQ(originHost("https://gpu1:9400"), "gpu1");
  EXPECT_EQ(originHost("ftp://gpu1"), "");
  EXPECT_EQ(originHost("null"), "");
  EXPECT_EQ(originHost("http://gpu1/path"), "");
  EXPECT_EQ(originHost(""), "");
}

TEST(HttpMessage, APageComesWithItsPolicy) {
  EXPECT_NE(httpText({200, "x", "text/html", {}, "default-src 'none'"})
                .find("\r\nContent-Security-Policy: default-src 'none'\r\n"),
            std::string::npos);
  EXPECT_EQ(httpText({200, "x"}).find("Content-Security-Policy"), std::string::npos);
}

TEST(HttpMessage, WhatFollowsARequestIsNotLookedAt) {
  const std::string one = "GET /a HTTP/1.1\r\nHost: x\r\n\r\n";
  EXPECT_EQ(requestOf(one + "GET /b HTTP/1.1\r\nHost: x\r\n\r\n").path, "/a");
  EXPECT_EQ(requestOf(one + std::string("\0\xff junk", 7)).path, "/a");
}

TEST(HttpMessage, EveryBeginningOfARequestIsIncomplete) {
  const std::string whole = "GET /metrics HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\n\r\n";
  for (size_t bytes = 0; bytes < whole.size(); ++bytes)
    EXPECT_TRUE(std::holds_alternative<HttpIncomplete>(parseHttpRequest(whole.substr(0, bytes))))
        << bytes;
  EXPECT_EQ(requestOf(whole).path, "/metrics");
}

TEST(HttpMessage, WhatIsNoRequestIsRefusedWithItsStatus) {
  EXPECT_EQ(refusalOf("\x16\x03\x01\x02"), 400) << "TLS is known by its first byte";
  EXPECT_EQ(refusalOf("get / HTTP/1.1\r\nHost: x\r\n\r\n"), 400);
  EXPECT_EQ(refusalOf("GET\r\n\r\n"), 400);
  EXPECT_EQ(refusalOf("GET / HTTP/1.1\r\nHost x\r\n\r\n"), 400);
  EXPECT_EQ(refusalOf("GET / HTTP/1.1\r\n\r\n"), 400) << "no Host";
  EXPECT_EQ(refusalOf("GET http://x/ HTTP/1.1\r\nHost: x\r\n\r\n"), 400);
  EXPECT_EQ(refusalOf("GET / HTTP/2.0\r\nHost: x\r\n\r\n"), 505);
  EXPECT_EQ(refusalOf("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc"), 405);
  EXPECT_EQ(refusalOf("DELETE / HTTP/1.1\r\nHost: x\r\n\r\n"), 405);
  EXPECT_EQ(refusalOf("FETCH / HTTP/1.1\r\nHost: x\r\n\r\n"), 501);
  EXPECT_EQ(refusalOf("GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc"), 413);
  EXPECT_EQ(refusalOf("GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\n"), 413);
  EXPECT_EQ(refusalOf("GET / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
            413);
  EXPECT_EQ(refusalOf("GET / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n"), 400);
  EXPECT_EQ(refusalOf("GET / HTTP/1.1\r\nX: " + std::string(kHttpHeadBytesMax, 'a')), 431);
  EXPECT_EQ(refusalOf("GET /" + std::string(kHttpHeadBytesMax, 'a')), 431);
}

TEST(HttpMessage, TheAnswerToHeadHasNoBody) {
  const HttpParsed parsed = parseHttpRequest("HEAD / HTTP/1.1\r\nHost: x\r\n\r\n");
  const auto& refusal = std::get<HttpRefusal>(parsed);
  EXPECT_EQ(refusal.status, 405);
  EXPECT_TRUE(refusal.is_head);
}

TEST(HttpMessage, AnAnswerSaysItsLengthAndThatItIsTheLast) {
  EXPECT_EQ(
      httpText({200, "ready\n"}),
      "HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: 6\r\n"
      "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n"
      "ready\n");
  const std::string refused = httpText({405, "no\n"}, false);
  EXPECT_TRUE(refused.starts_with("HTTP/1.1 405 Method Not Allowed\r\n")) << refused;
  EXPECT_NE(refused.find("Allow: GET\r\n"), std::string::npos) << refused;
  EXPECT_NE(refused.find("Content-Length: 3\r\n"), std::string::npos) << refused;
  EXPECT_TRUE(refused.ends_with("\r\n\r\n")) << refused;
}

}  // namespace
}  // namespace dtf::net
