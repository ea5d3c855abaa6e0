#include "common/net/http_server.h"

#include <gmock/gmock.h>

#include "tests/unit/net/net_fixture.h"

namespace dtf::net::testing {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr const char* kGetText = "GET /page HTTP/1.1\r\nHost: localhost\r\n\r\n";

class HttpServerTest : public ::testing::Test {
 protected:
  ~HttpServerTest() noexcept override {}  // gtest's may not throw, kj's may

  // Serves pages that contain their path.
  void serve(HttpOptions options = {}) {
    serve(
        [](const std::string& path) -> kj::Promise<HttpResponse> {
          return HttpResponse{200, "this is " + path};
        },
        std::move(options));
  }
  void serve(HttpServer::Handler handler, HttpOptions options = {}) {
    server_ = std::make_unique<HttpServer>(reactor_.port, "localhost", 0, std::move(handler),
                                           std::move(options));
  }
  Fd connect() const {
    const std::string& address = server_->address();
    return connectRaw(static_cast<uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))));
  }
  // Returns the bytes that arrived on `fd` until the server closed it.
  std::string readAll(const Fd& fd) {
    std::string text;
    bool closed = false;
    runUntil(reactor_, [&] {
      char bytes[4096];
      for (;;) {
        const ssize_t n = ::recv(fd.get(), bytes, sizeof bytes, MSG_DONTWAIT);
        if (n > 0) {
          text.append(bytes, static_cast<size_t>(n));
          continue;
        }
        closed = n == 0 || errno != EAGAIN;
        return closed;
      }
    });
    EXPECT_TRUE(closed);
    return text;
  }
  std::string ask(const std::string& request) {
    const Fd fd = connect();
    sendRaw(fd, request.data(), request.size());
    return readAll(fd);
  }

  Reactor reactor_;
  std::unique_ptr<HttpServer> server_;
};

TEST_F(HttpServerTest, AnswersOneRequestAConnection) {
  serve();
  const std::string answer = ask(kGetText);
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(answer, EndsWith("\r\n\r\nthis is /page"));
  const std::string piped = ask(std::string(kGetText) + "GET /other HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(piped, EndsWith("\r\n\r\nthis is /page")) << "what comes behind is not answered";
  runUntil(reactor_, [&] { return server_->connectionCount() == 0; });
}

TEST_F(HttpServerTest, ARequestMayComeByteByByte) {
  serve();
  const Fd fd = connect();
  for (const char* byte = kGetText; *byte != 0; ++byte) {
    sendRaw(fd, byte, 1);
    reactor_.timer.afterDelay(100 * kj::MICROSECONDS).wait(reactor_.wait_scope);
  }
  EXPECT_THAT(readAll(fd), EndsWith("this is /page"));
}

// The socket takes little at a time.
TEST_F(HttpServerTest, ALargeAnswerArrivesWholeThoughMoreWasSentThanARequest) {
  const std::string page(8 << 20, 'x');
  serve([&page](const std::string&) -> kj::Promise<HttpResponse> {
    return HttpResponse{200, page};
  });
  const std::string answer = ask(kGetText + std::string(20'000, 'y'));
  EXPECT_THAT(answer.substr(0, 200), HasSubstr("Content-Length: 8388608\r\n"));
  EXPECT_TRUE(answer.ends_with("\r\n\r\n" + page));
}

TEST_F(HttpServerTest, RefusesWhatItDoesNotUnderstandWithAStatusAndALine) {
  serve();
  ::testing::internal::CaptureStderr();
  EXPECT_THAT(ask("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nab"),
              StartsWith("HTTP/1.1 405 "));
  EXPECT_THAT(ask("HEAD / HTTP/1.1\r\nHost: x\r\n\r\n"), EndsWith("\r\n\r\n"));
  EXPECT_THAT(ask("\x16\x03\x01 hello"), StartsWith("HTTP/1.1 400 "));
  EXPECT_THAT(ask("GET / HTTP/1.1\r\nX: " + std::string(kHttpHeadBytesMax, 'a')),
              StartsWith("HTTP/1.1 431 "));
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("event=http_refused peer=127.0.0.1:"));
}

TEST_F(HttpServerTest, WhoIsSlowToAskIsToldSoInTime) {
  serve(HttpOptions{.request_deadline = 20ms});
  {
    const Fd silent = connect(), slow = connect();
    sendRaw(slow, kGetText, 10);
    EXPECT_THAT(readAll(silent), StartsWith("HTTP/1.1 408 "));
    EXPECT_THAT(readAll(slow), StartsWith("HTTP/1.1 408 "));
  }
  runUntil(reactor_, [&] { return server_->connectionCount() == 0; });
}

TEST_F(HttpServerTest, WhoDoesNotReadIsGivenUp) {
  const std::string page(64 << 20, 'x');  // more than the kernel takes
  serve(
      [&page](const std::string&) -> kj::Promise<HttpResponse> {
        return HttpResponse{200, page};
      },
      {.reading_deadline = 20ms});
  const Fd fd = connect();
  sendRaw(fd, kGetText, std::string_view(kGetText).size());
  runUntil(reactor_, [&] { return server_->connectionCount() == 1; });
  runUntil(reactor_, [&] { return server_->connectionCount() == 0; });
}

TEST_F(HttpServerTest, AnAnswerThatDoesNotComeIsA503AndAFailureA500) {
  auto never = kj::newPromiseAndFulfiller<HttpResponse>();
  serve(
      [&never](const std::string& path) -> kj::Promise<HttpResponse> {
        if (path == "/page") return kj::mv(never.promise);
        throw Error(ErrorCode::kBadData, "no such thing");
      },
      {.answer_deadline = 20ms});
  EXPECT_THAT(ask(kGetText),
              AllOf(StartsWith("HTTP/1.1 503 "), EndsWith("no answer within 0.02 s\n")));
  EXPECT_THAT(ask("GET /other HTTP/1.1\r\nHost: localhost\r\n\r\n"),
              AllOf(StartsWith("HTTP/1.1 500 "), HasSubstr("no such thing")));
}

// A connection without a request doesn't keep out a client with one.
TEST_F(HttpServerTest, WhoOwesItsRequestForLongestMakesRoom) {
  serve({.connections_max = 2});
  const Fd first = connect(), second = connect();
  runUntil(reactor_, [&] { return server_->connectionCount() == 2; });
  EXPECT_THAT(ask(kGetText), EndsWith("this is /page"));
  EXPECT_EQ(readAll(first), "");
  sendRaw(second, kGetText, std::string_view(kGetText).size());
  EXPECT_THAT(readAll(second), EndsWith("this is /page"));
}

// Some clients send a request and never close.
TEST_F(HttpServerTest, WhoHasHadItsAnswerMakesRoomFirst) {
  serve({.connections_max = 2});
  const Fd silent = connect(), answered = connect();
  sendRaw(answered, kGetText, std::string_view(kGetText).size());
  EXPECT_THAT(readAll(answered), EndsWith("this is /page"));
  runUntil(reactor_, [&] { return server_->connectionCount() == 2; });
  EXPECT_THAT(ask(kGetText), EndsWith("this is /page"));
  EXPECT_THAT(ask(kGetText), EndsWith("this is /page"));
  sendRaw(silent, kGetText, std::string_view(kGetText).size());
  EXPECT_THAT(readAll(silent), EndsWith("this is /page")) << "it was not the one to go";
}

TEST_F(HttpServerTest, WhenAllAreBeingAnsweredOneMoreIsClosed) {
  auto later = kj::newPromiseAndFulfiller<HttpResponse>();
  bool is_asked = false;
  serve(
      [&](const std::string&) {
        is_asked = true;
        return kj::mv(later.promise);
      },
      {.connections_max = 1});
  const Fd asked = connect();
  sendRaw(asked, kGetText, std::string_view(kGetText).size());
  runUntil(reactor_, [&] { return is_asked; });
  EXPECT_EQ(readAll(connect()), "");
  later.fulfiller->fulfill(HttpResponse{200, "at last"});
  EXPECT_THAT(readAll(asked), EndsWith("at last"));
}

TEST_F(HttpServerTest, APageOfAnotherHostMayReadTheAnswersOnlyWhereThatIsSaid) {
  serve(HttpOptions{.readers = {"Gpu1", "::1"}});
  const auto readable_from = [this](const std::string& origin) {
    const std::string answer =
        ask("GET / HTTP/1.1\r\nHost: localhost\r\nOrigin: " + origin + "\r\n\r\n");
    constexpr std::string_view kField = "Access-Control-Allow-Origin: ";
    const size_t begin = answer.find(kField);
    if (begin == std::string::npos) return std::string();
    return answer.substr(begin + kField.size(), answer.find("\r\n", begin) - begin - kField.size());
  };
  EXPECT_EQ(readable_from("http://gpu1:9401"), "http://gpu1:9401");
  EXPECT_EQ(readable_from("http://GPU1"), "http://GPU1");
  EXPECT_EQ(readable_from("http://[::1]:80"), "http://[::1]:80");
  EXPECT_EQ(readable_from("http://gpu2:9401"), "");
  EXPECT_EQ(readable_from("http://gpu1.evil.example"), "");
  EXPECT_EQ(readable_from("null"), "");
  EXPECT_EQ(readable_from("*"), "");
}

// A page of a foreign site may have a name that resolves to this host.
TEST_F(HttpServerTest, AnswersUnderItsOwnNameAndAddressesAlone) {
  serve(HttpOptions{.only_host = "Gpu1"});
  const auto status = [this](const std::string& host) {
    return ask("GET / HTTP/1.1\r\nHost: " + host + "\r\n\r\n").substr(9, 3);
  };
  for (const char* host :
       {"gpu1", "GPU1:9400", "localhost:1", "127.0.0.1", "10.1.2.3:80", "[::1]:2"})
    EXPECT_EQ(status(host), "200") << host;
  for (const char* host : {"evil.example", "gpu1.evil.example:9400"})
    EXPECT_EQ(status(host), "421") << host;
}

TEST_F(HttpServerTest, EndsWithRequestsUnderWay) {
  auto never = kj::newPromiseAndFulfiller<HttpResponse>();
  serve([&never](const std::string&) { return kj::mv(never.promise); });
  const Fd silent = connect(), asked = connect();
  sendRaw(asked, kGetText, std::string_view(kGetText).size());
  runUntil(reactor_, [&] { return server_->connectionCount() == 2; });
  server_ = nullptr;
  EXPECT_EQ(readAll(silent), "");
  EXPECT_EQ(readAll(asked), "");
}

TEST_F(HttpServerTest, APortInUseIsSaidWithItsHolder) {
  serve();
  const std::string& address = server_->address();
  const auto port = static_cast<uint16_t>(std::stoi(address.substr(address.rfind(':') + 1)));
  try {
    const HttpServer second(reactor_.port, "localhost", port, [](const std::string&) {
      return kj::Promise<HttpResponse>(HttpResponse{});
    });
    FAIL() << "two at one port";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
    EXPECT_THAT(error.message(), HasSubstr("the port is in use by pid "));
  }
}

}  // namespace
}  // namespace dtf::net::testing
