#include "daemons/metrics_server.h"

#include <gmock/gmock.h>
#include <kj/debug.h>

#include "tests/unit/net/net_fixture.h"

namespace dtf::daemons {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

cluster::TaskOptions optionsAt(const std::string& host) {
  cluster::TaskOptions options;
  options.task = {JobKind::kPs, 0};
  options.attempt = 3;
  options.metrics_port = 0;
  options.job.job = "some-job";
  options.job.cluster.ps.push_back({.address = {host, 2222}});
  return options;
}

class MetricsServerTest : public ::testing::Test {
 protected:
  ~MetricsServerTest() noexcept override {}  // kj's destructors may throw, gtest's may not

  std::unique_ptr<MetricsServer> serve(ServiceLooker look,
                                       Duration patience = MetricsServer::kPatience) {
    return std::make_unique<MetricsServer>(optionsAt("localhost"), net::Credentials(), loop_,
                                           std::move(look), patience);
  }
  static Fd ask(const MetricsServer& server, const std::string& path) {
    const std::string& address = server.address();
    const int port = std::stoi(address.substr(address.rfind(':') + 1));
    Fd fd = net::testing::connectRaw(static_cast<uint16_t>(port));
    const std::string request = "GET " + path + " HTTP/1.1\r\nHost: localhost\r\n\r\n";
    net::testing::sendRaw(fd, request.data(), request.size());
    return fd;
  }
  // Returns the bytes that arrived on `fd` until the server closed it. Meanwhile the control loop
  // turns.
  std::string readAll(const Fd& fd) {
    std::string text;
    net::testing::runUntil(reactor_, [&] {
      char bytes[4096];
      const ssize_t n = ::recv(fd.get(), bytes, sizeof bytes, MSG_DONTWAIT);
      if (n > 0) text.append(bytes, static_cast<size_t>(n));
      return n == 0 || (n < 0 && errno != EAGAIN);
    });
    return text;
  }
  std::string answer(const MetricsServer& server, const std::string& path) {
    return readAll(ask(server, path));
  }

  net::Reactor reactor_;
  net::ReactorLoop loop_{reactor_};
};

TEST_F(MetricsServerTest, HasAPageForPeopleAndWhatItDraws) {
  const auto server = serve([]() -> kj::Promise<ServiceLook> {
    return ServiceLook{"step 3 of 9", false, "", {gauge("dtf_loss", "The loss.", 0.5)}};
  });
  EXPECT_THAT(answer(*server, "/"),
              AllOf(StartsWith("HTTP/1.1 200 "), HasSubstr("text/html"), HasSubstr("</html>"),
                    HasSubstr("Content-Security-Policy: default-src 'none'")));
  EXPECT_THAT(answer(*server, "/status.json"),
              AllOf(HasSubstr("application/json"), HasSubstr("\"status\":\"step 3 of 9\""),
                    HasSubstr("[\"dtf_loss\",{},0.5]"), HasSubstr("process_resident_memory")));
}

TEST_F(MetricsServerTest, SaysWhatTheLookFinds) {
  ServiceLook found{"step 3 of 9", false, "", {gauge("dtf_loss", "The loss.", 0.5)}};
  const auto server = serve([&found]() -> kj::Promise<ServiceLook> { return ServiceLook(found); });
  EXPECT_THAT(answer(*server, "/healthz"),
              AllOf(StartsWith("HTTP/1.1 200 "), EndsWith("\r\nstep 3 of 9\n")));
  EXPECT_THAT(answer(*server, "/readyz"),
              AllOf(StartsWith("HTTP/1.1 200 "), EndsWith("\r\nready\n")));
  const std::string page = answer(*server, "/metrics");
  EXPECT_THAT(page, AllOf(StartsWith("HTTP/1.1 200 "),
                          HasSubstr("Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n")));
  EXPECT_THAT(page, HasSubstr("\ndtf_loss{dtf_job=\"some-job\",task=\"ps/0\"} 0.5\n"));
  EXPECT_THAT(page, HasSubstr("\ndtf_task_ready{dtf_job=\"some-job\",task=\"ps/0\"} 1\n"));
  EXPECT_THAT(page, HasSubstr("attempt=\"3\"} 1\n"));
  EXPECT_THAT(page, HasSubstr("\nprocess_resident_memory_bytes{"));
  found.not_ready = "it waits for worker/1";
  EXPECT_THAT(
      answer(*server, "/readyz"),
      AllOf(StartsWith("HTTP/1.1 503 "), EndsWith("\r\nnot ready: it waits for worker/1\n")));
  EXPECT_THAT(answer(*server, "/healthz"), StartsWith("HTTP/1.1 200 "));
  EXPECT_THAT(answer(*server, "/metrics"),
              HasSubstr("\ndtf_task_ready{dtf_job=\"some-job\",task=\"ps/0\"} 0\n"));
  EXPECT_THAT(answer(*server, "/other"), StartsWith("HTTP/1.1 404 "));
}

// A service manager's watchdog uses /healthz; it has other means against a task that doesn't end in
// time.
TEST_F(MetricsServerTest, ATaskThatEndsIsHealthyAndNotReady) {
  const auto server =
      serve([]() -> kj::Promise<ServiceLook> { return KJ_EXCEPTION(FAILED, "no more answers"); });
  EXPECT_THAT(answer(*server, "/healthz"),
              AllOf(StartsWith("HTTP/1.1 200 "), EndsWith("ending\n")));
  EXPECT_THAT(answer(*server, "/readyz"), StartsWith("HTTP/1.1 503 "));
}

// The server's own thread answers for a loop that hangs, here with the control loop at rest.
TEST_F(MetricsServerTest, ALoopThatHangsIsNotHealthy) {
  int looks = 0;
  const auto begin = std::chrono::steady_clock::now();
  const auto server = serve(
      [&looks]() -> kj::Promise<ServiceLook> {
        ++looks;
        return ServiceLook{"awake"};
      },
      std::chrono::milliseconds(500));
  std::vector<Fd> asking;
  for (const char* path : {"/healthz", "/readyz", "/metrics"}) asking.push_back(ask(*server, path));
  for (const Fd& fd : asking) {
    char bytes[4096];
    const ssize_t n = ::recv(fd.get(), bytes, sizeof bytes, 0);
    ASSERT_GT(n, 0);
    EXPECT_THAT(std::string(bytes, static_cast<size_t>(n)), StartsWith("HTTP/1.1 503 "));
  }
  EXPECT_THAT(answer(*server, "/healthz"), EndsWith("awake\n"));
  // Besides, the page's curve makes one look a second.
  const auto seconds = (std::chrono::steady_clock::now() - begin) / std::chrono::seconds(1);
  EXPECT_LE(looks, 2 + seconds) << "however many ask, one look is under way";
}

TEST_F(MetricsServerTest, EndsWhileALookIsUnderWay) {
  bool asked = false;
  auto never = kj::newPromiseAndFulfiller<ServiceLook>();
  auto server = serve([&] {
    asked = true;
    return kj::mv(never.promise);
  });
  const Fd fd = ask(*server, "/metrics");
  net::testing::runUntil(reactor_, [&] { return asked; });
  server = nullptr;
  EXPECT_EQ(readAll(fd), "");
}

TEST_F(MetricsServerTest, ListensBeyondLoopbackOnlyWhereTheJobMay) {
  cluster::TaskOptions options = optionsAt("0.0.0.0");
  const auto look = []() -> kj::Promise<ServiceLook> { return ServiceLook{}; };
  try {
    const MetricsServer server(options, {}, loop_, look);
    FAIL() << server.address();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBadConfig);
    EXPECT_THAT(error.message(), HasSubstr("insecure"));
    EXPECT_THAT(error.message(), HasSubstr("without keys these pages are plain HTTP"));
    EXPECT_THAT(error.message(), HasSubstr("dtf-launch keys init DIR"));
  }
  options.job.cluster.insecure = true;
  EXPECT_THAT(MetricsServer(options, {}, loop_, look).address(), StartsWith("0.0.0.0:"));
}

}  // namespace
}  // namespace dtf::daemons
