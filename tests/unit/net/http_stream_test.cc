#include "common/net/http_stream.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <openssl/ssl.h>

#include "common/net/http_server.h"
#include "tests/unit/net/key_fixture.h"

// An HttpServer with keys, and OpenSSL's own client, as in curl and browsers.

namespace dtf::net::testing {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr std::string_view kGet = "GET /page HTTP/1.1\r\nHost: localhost\r\n\r\n";
constexpr std::string_view kGetHealth = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";

class HttpsTest : public ::testing::Test {
 protected:
  ~HttpsTest() noexcept override {}  // gtest's may not throw, kj's may

  void serve(HttpServer::Handler handler, HttpOptions options = {}) {
    options.keys = keys_;
    options.open_paths = {"/healthz"};
    server_ = std::make_unique<HttpServer>(reactor_.port, "localhost", 0, std::move(handler),
                                           std::move(options));
  }
  // Serves pages that contain their path.
  void serve(HttpOptions options = {}) {
    serve(
        [](const std::string& path) -> kj::Promise<HttpResponse> {
          return HttpResponse{200, "this is " + path};
        },
        std::move(options));
  }
  Fd connect() const {
    const std::string& address = server_->address();
    return connectRaw(static_cast<uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))));
  }

  // Returns the reply to `request` from a client with the certificate in `key_file`; empty: none.
  // Returns "no answer" if TLS fails.
  std::string ask(std::string_view request, const std::filesystem::path& key_file = {}) {
    const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context(
        SSL_CTX_new(TLS_client_method()), &SSL_CTX_free);
    if (!key_file.empty()) {
      EXPECT_EQ(SSL_CTX_use_certificate_file(context.get(), key_file.c_str(), SSL_FILETYPE_PEM), 1);
      EXPECT_EQ(SSL_CTX_use_PrivateKey_file(context.get(), key_file.c_str(), SSL_FILETYPE_PEM), 1);
    }
    const Fd fd = connect();
    ::fcntl(fd.get(), F_SETFL, O_NONBLOCK);
    const std::unique_ptr<SSL, decltype(&SSL_free)> ssl(SSL_new(context.get()), &SSL_free);
    SSL_set_fd(ssl.get(), fd.get());
    std::string text;
    bool is_sent = false, is_over = false;
    runUntil(reactor_, [&] {
      int done = 1;
      if (!is_sent) {
        done = SSL_connect(ssl.get());
        if (done == 1)
          done = SSL_write(ssl.get(), request.data(), static_cast<int>(request.size()));
        is_sent = done > 0;
      }
      char bytes[16384];
      while (is_sent && (done = SSL_read(ssl.get(), bytes, sizeof bytes)) > 0)
        text.append(bytes, static_cast<size_t>(done));
      const int why = SSL_get_error(ssl.get(), done);
      is_over = why != SSL_ERROR_WANT_READ && why != SSL_ERROR_WANT_WRITE;
      if (is_over && why != SSL_ERROR_ZERO_RETURN) text = "no answer";
      return is_over;
    });
    return text;
  }

  Reactor reactor_;
  JobKeys job_;
  const std::shared_ptr<TlsKeys> keys_ = job_.of("ps/0");
  std::unique_ptr<HttpServer> server_;
};

TEST_F(HttpsTest, WhoShowsACertificateOfTheJobIsAnswered) {
  serve();
  job_.folder().issue("client", "", {});
  EXPECT_THAT(ask(kGet, job_.path() / "client.pem"),
              AllOf(StartsWith("HTTP/1.1 200 OK\r\n"), EndsWith("\r\n\r\nthis is /page")));
  runUntil(reactor_, [&] { return server_->connectionCount() == 0; });
}

TEST_F(HttpsTest, WhoShowsNoneIsToldYesOrNoAtTheOpenPathsAlone) {
  serve();
  EXPECT_THAT(ask(kGet), AllOf(StartsWith("HTTP/1.1 403 "), HasSubstr("client.pem")));
  EXPECT_THAT(ask(kGetHealth), AllOf(StartsWith("HTTP/1.1 200 "), EndsWith("\r\n\r\nyes\n")));
  serve([](const std::string&) -> kj::Promise<HttpResponse> {
    return HttpResponse{503, "worker/1 is awaited\n"};
  });
  EXPECT_THAT(ask(kGetHealth), AllOf(StartsWith("HTTP/1.1 503 "), EndsWith("\r\n\r\nno\n")));
}

TEST_F(HttpsTest, AnotherJobsCertificateIsRefused) {
  serve();
  JobKeys other;
  other.folder().issue("client", "", {});
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(ask(kGet, other.path() / "client.pem"), "no answer");
  EXPECT_EQ(ask(kGetHealth, other.path() / "client.pem"), "no answer");
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              AllOf(HasSubstr("event=http_refused peer=127.0.0.1:"),
                    HasSubstr("is signed by another job's CA")));
}

// The browser shows the viewer's certificate for any page, so the page must have come by TLS, too.
TEST_F(HttpsTest, OnlyAPageThatCameByTlsMayReadTheAnswers) {
  serve(HttpOptions{.readers = {"gpu1"}});
  const auto answerTo = [this](const std::string& origin) {
    return ask("GET / HTTP/1.1\r\nHost: localhost\r\nOrigin: " + origin + "\r\n\r\n",
               job_.path() / "ps-0.pem");
  };
  EXPECT_THAT(answerTo("https://gpu1:9401"),
              AllOf(HasSubstr("Access-Control-Allow-Origin: https://gpu1:9401\r\n"),
                    HasSubstr("Access-Control-Allow-Credentials: true\r\n")));
  for (const char* origin : {"http://gpu1:9401", "https://gpu2:9401"})
    EXPECT_EQ(answerTo(origin).find("Access-Control-Allow-"), std::string::npos) << origin;
}

TEST_F(HttpsTest, WhoAsksWithoutTlsIsToldSo) {
  serve();
  const Fd fd = connect();
  sendRaw(fd, kGetHealth.data(), kGetHealth.size());
  std::string text;
  runUntil(reactor_, [&] {
    char bytes[4096];
    const ssize_t n = ::recv(fd.get(), bytes, sizeof bytes, MSG_DONTWAIT);
    if (n > 0) text.append(bytes, static_cast<size_t>(n));
    return n == 0;
  });
  EXPECT_THAT(text, AllOf(StartsWith("HTTP/1.1 400 "), HasSubstr("ask by https://")));
}

// The socket takes little at a time.
TEST_F(HttpsTest, ALargeAnswerArrivesWhole) {
  const std::string page(8 << 20, 'x');
  serve([&page](const std::string&) -> kj::Promise<HttpResponse> {
    return HttpResponse{200, page};
  });
  const std::string answer = ask(kGet, job_.path() / "ps-0.pem");
  EXPECT_THAT(answer.substr(0, 200), HasSubstr("Content-Length: 8388608\r\n"));
  EXPECT_TRUE(answer.ends_with("\r\n\r\n" + page));
}

TEST_F(HttpsTest, WhoStopsWithinTheHandshakeIsGivenUp) {
  serve(HttpOptions{.request_deadline = 20ms});
  const Fd silent = connect(), halfway = connect();
  sendRaw(halfway, "\x16\x03\x01\x02", 4);
  for (const Fd* fd : {&silent, &halfway})
    runUntil(reactor_, [&] {
      char byte;
      const ssize_t n = ::recv(fd->get(), &byte, 1, MSG_DONTWAIT);
      return n == 0 || (n < 0 && errno == ECONNRESET);
    });
  runUntil(reactor_, [&] { return server_->connectionCount() == 0; });
}

TEST_F(HttpsTest, EndsWithHandshakesUnderWay) {
  serve();
  const Fd silent = connect(), halfway = connect();
  sendRaw(halfway, "\x16\x03\x01\x02", 4);
  runUntil(reactor_, [&] { return server_->connectionCount() == 2; });
  server_ = nullptr;
  char byte;
  EXPECT_EQ(::recv(silent.get(), &byte, 1, 0), 0);
  EXPECT_LE(::recv(halfway.get(), &byte, 1, 0), 0);
}

}  // namespace
}  // namespace dtf::net::testing
