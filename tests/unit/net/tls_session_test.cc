#include "common/net/tls_session.h"

#include <gmock/gmock.h>

#include "common/net/connector.h"
#include "common/net/frame_link.h"
#include "common/net/tls_keys.h"
#include "tests/unit/net/key_fixture.h"
#include "tests/unit/net/net_fixture.h"

// A listener with keys, and its clients: peers of the job, of another job, and strangers. TCP on
// loopback, both sides in one loop.

namespace dtf::net::testing {
namespace {

using ::testing::HasSubstr;
constexpr size_t kStoreBytes = 8 << 20;

class TlsTest : public ::testing::Test {
 protected:
  TlsTest()
      : host_(reactor_.port, kStoreBytes),
        ps_(job_.of("ps/0")),
        worker_(job_.of("worker/1")),
        listener_(reactor_.port, "127.0.0.1", 0, accept(),
                  {.preamble_deadline = 5s, .credentials = Credentials::ofKeys(ps_)}) {}
  ~TlsTest() noexcept override {}  // gtest's may not throw, kj's may

  Listener::OnConnection accept() {
    return [this](AcceptedSocket accepted, ConnectionKind kind, std::string peer) {
      kinds_.push_back(kind);
      certified_.push_back(accepted.tls == nullptr ? "" : accepted.tls->peer());
      host_.serve(std::move(accepted), std::move(peer));
    };
  }
  ConnectOptions as(const std::shared_ptr<TlsKeys>& keys, const std::string& wanted = "ps/0") {
    return {.kind = ConnectionKind::kBulk,
            .peer_name = "ps/0",
            .deadline = 1s,
            .certified_task = wanted,
            .credentials = Credentials::ofKeys(keys)};
  }
  kj::Promise<Transport> connect(const ConnectOptions& options) {
    return connectToPeer(reactor_.port, "127.0.0.1", listener_.port(), options);
  }
  // Returns the client's error for a connection that failed; the server's log is in log_.
  Error refusal(const ConnectOptions& options) {
    ::testing::internal::CaptureStderr();
    const Error error = toError(failureOf(reactor_, connect(options)));
    log_ = ::testing::internal::GetCapturedStderr();
    return error;
  }
  void expectRefused(const ConnectOptions& options, const std::string& client_says,
                     const std::string& server_says) {
    const Error error = refusal(options);
    EXPECT_EQ(error.code(), ErrorCode::kPermission) << error.message();
    EXPECT_THAT(error.message(), HasSubstr(client_says));
    if (!server_says.empty()) {
      EXPECT_THAT(log_, HasSubstr("event=connection_refused peer=127.0.0.1:"));
      EXPECT_THAT(log_, HasSubstr(server_says));
    }
    EXPECT_TRUE(kinds_.empty());
  }
  // Returns the listener's log until it has closed `fd`.
  std::string logUntilClosed(const Fd& fd) {
    ::testing::internal::CaptureStderr();
    char bytes[64];
    runUntil(reactor_, [&] {
      const ssize_t got = ::recv(fd.get(), bytes, sizeof bytes, MSG_DONTWAIT);
      return got == 0 || (got < 0 && errno != EAGAIN);
    });
    return ::testing::internal::GetCapturedStderr();
  }

  Reactor reactor_;
  EchoHost host_;
  JobKeys job_;
  std::shared_ptr<TlsKeys> ps_, worker_;
  std::vector<ConnectionKind> kinds_;
  std::vector<std::string> certified_;
  std::string log_;
  Listener listener_;
};

TEST_F(TlsTest, PeersOfOneJobKnowWhoTheyTalkTo) {
  ::testing::internal::CaptureStderr();
  Transport transport = waitFor(reactor_, connect(as(worker_)));
  EXPECT_EQ(transport.tls->peer(), "ps/0");
  EXPECT_EQ(certified_, std::vector<std::string>{"worker/1"});
  EXPECT_EQ(kinds_, std::vector<ConnectionKind>{ConnectionKind::kBulk});
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("event=connection_accepted peer=127.0.0.1:"));
  EchoConnection client(reactor_.port, std::move(transport));
  EXPECT_EQ(client.stream().certifiedPeer(), "ps/0");
  auto request = client.echo.echoRequest();
  request.setText("hello");
  EXPECT_STREQ(waitFor(reactor_, request.send()).getText().cStr(), "hello");
}

TEST_F(TlsTest, CarriesBulkBothWaysWhole) {
  EchoConnection client(reactor_.port, waitFor(reactor_, connect(as(worker_))));
  auto answer = waitFor(reactor_, pull(client.echo, 0, kStoreBytes));
  EXPECT_EQ(checksum(answer.getData().begin(), answer.getData().size()),
            checksum(host_.store().bytes.get(), kStoreBytes));
  const auto bytes = makePattern(host_.pool(), kStoreBytes);
  const uint64_t pushed =
      waitFor(reactor_, push(client.echo, client.stream(), bytes.get(), kStoreBytes, bytes));
  EXPECT_EQ(pushed, checksum(bytes.get(), kStoreBytes));
}

TEST_F(TlsTest, AServerOfAnotherNameIsNotTalkedTo) {
  expectRefused(as(worker_, "ps/1"), "its certificate is for ps/0, ps/1 is wanted", "");
}

TEST_F(TlsTest, ACertificateOfAnotherCaIsRefusedByBothSides) {
  JobKeys other;  // of the same job name: the name alone proves nothing
  expectRefused(as(other.of("worker/1")), "signed by another job's CA", "");
  Listener theirs(reactor_.port, "127.0.0.1", 0, accept(),
                  {.credentials = Credentials::ofKeys(other.of("ps/0"))});
  ConnectOptions options = as(worker_);
  const Error error = toError(
      failureOf(reactor_, connectToPeer(reactor_.port, "127.0.0.1", theirs.port(), options)));
  EXPECT_THAT(error.message(), HasSubstr("its certificate (ps/0 of job 'mnist') is signed by "
                                         "another job's CA"));
}

TEST_F(TlsTest, AnExpiredCertificateIsRefusedAndNamed) {
  const std::shared_ptr<TlsKeys> brief =
      job_.of("worker/2", {.from = std::chrono::hours(-1), .until = std::chrono::seconds(2)});
  runUntil(reactor_, [&] { return job_.folder().list().back().expired; });
  expectRefused(as(brief),
                "it says that this side's certificate has expired; dtf-launch keys renew",
                "its certificate (worker/2 of job 'mnist') expired on ");
}

TEST_F(TlsTest, WhoHasNoKeysIsToldSo) {
  const Fd plain = connectRaw(listener_.port());
  sendPreamble(plain);
  EXPECT_THAT(logUntilClosed(plain),
              HasSubstr("a dtf program without TLS: this task has keys, so its clients need "
                        "keys of the job, too"));
  const Fd browser = connectRaw(listener_.port());
  sendRaw(browser, "GET / HTTP/1.1\r\n\r\n", 18);
  EXPECT_THAT(logUntilClosed(browser), HasSubstr("an HTTP request without TLS"));
  EXPECT_TRUE(kinds_.empty());
}

// The client's next read fails with the reason, as the connection itself succeeds before any check.
TEST_F(TlsTest, APlainClientUnderstandsWhyItIsClosed) {
  EchoConnection client(
      reactor_.port, waitFor(reactor_, connectToPeer(reactor_.port, "127.0.0.1", listener_.port(),
                                                     {.deadline = 5s})));
  const kj::Exception failure =
      failureOf(reactor_, client.echo.pingRequest().send().ignoreResult());
  EXPECT_THAT(client.stream().violation() + failure.getDescription().cStr(),
              HasSubstr("a TLS alert, not a dtf message: it has keys, and this side has none"));
}

// A loop connects with its own credentials: no identity belongs to the whole process.
TEST_F(TlsTest, ALoopForEachIdentityInOneProcess) {
  struct Client {
    explicit Client(Credentials credentials) : io("client", {}, std::move(credentials)) {}
    Error refusal(uint16_t port, const std::string& wanted) {
      try {
        io.call([&] {
          return io.connect("127.0.0.1", port,
                            {.peer_name = "ps/0", .deadline = 1s, .certified_task = wanted}, {},
                            BufferPool::create(0));
        });
      } catch (const Error& error) {
        return error;
      }
      return Error(ErrorCode::kInternal, "");
    }
    IoThread io;
  };
  JobKeys other;
  std::vector<std::string> certified;
  std::unique_ptr<Listener> listener;
  IoThread serving("serve");  // its end uses both
  serving.onStop([&] { listener = nullptr; });
  serving.call([&] {
    listener = std::make_unique<Listener>(
        serving.port(), "127.0.0.1", 0,
        [&](AcceptedSocket accepted, ConnectionKind, std::string) {
          certified.push_back(accepted.tls->peer());
        },
        ListenerOptions{.preamble_deadline = 5s, .credentials = Credentials::ofKeys(ps_)});
  });
  const uint16_t port = serving.call([&] { return listener->port(); });
  Client worker(Credentials::ofKeys(worker_)), client(Credentials::ofKeys(job_.of("client"))),
      stranger(Credentials::ofKeys(other.of("worker/1")));
  EXPECT_EQ(client.refusal(port, "ps/0").message(), "");
  EXPECT_EQ(stranger.refusal(port, "ps/0").code(), ErrorCode::kPermission);
  EXPECT_EQ(worker.refusal(port, "ps/0").message(), "");
  EXPECT_THAT(serving.call([&] { return certified; }),
              ::testing::ElementsAre("client", "worker/1"));
}

TEST_F(TlsTest, AServerWithoutKeysIsNamed) {
  Listener plain(reactor_.port, "127.0.0.1", 0, accept());
  ::testing::internal::CaptureStderr();
  const Error error = toError(
      failureOf(reactor_, connectToPeer(reactor_.port, "127.0.0.1", plain.port(), as(worker_))));
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("a TLS handshake: the client uses keys, and this task has none"));
  EXPECT_THAT(error.message(), HasSubstr("it closed the connection in the TLS handshake"));
  EXPECT_EQ(error.code(), ErrorCode::kUnavailable);  // as for a peer that dies: it may come back
}

TEST_F(TlsTest, JunkInAHandshakeIsRefused) {
  const Fd fd = connectRaw(listener_.port());
  sendRaw(fd,
          "\x16\x03\x01\x00\x20"
          "0123456789abcdef0123456789abcdef",
          37);
  EXPECT_THAT(logUntilClosed(fd), HasSubstr("event=connection_refused"));
  EXPECT_EQ(listener_.pendingCount(), 0u);
}

TEST(TlsListener, AHandshakeThatDoesNotComeHasTheDeadlineOfAPreamble) {
  Reactor reactor;
  JobKeys job;
  Listener listener(
      reactor.port, "127.0.0.1", 0, [](AcceptedSocket, ConnectionKind, std::string) { FAIL(); },
      {.preamble_deadline = 20ms, .credentials = Credentials::ofKeys(job.of("ps/0"))});
  const Fd silent = connectRaw(listener.port()), halfway = connectRaw(listener.port());
  sendRaw(halfway, "\x16\x03\x01\x02\x00\x01", 6);
  ::testing::internal::CaptureStderr();
  char byte;
  for (const Fd* fd : {&silent, &halfway})
    runUntil(reactor, [&] { return ::recv(fd->get(), &byte, 1, MSG_DONTWAIT) == 0; });
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("within 20 ms"));
  EXPECT_EQ(listener.pendingCount(), 0u);
}

// A record with bytes that changed on their way ends the connection, and no part of it is used.
TEST(TlsRecords, AChangedByteEndsTheConnection) {
  Reactor reactor;
  auto sockets = securePair(reactor.ioc);
  size_t put = 0;
  const std::string text(1000, 'x');
  ASSERT_EQ(sockets.first.tls->write(text.data(), text.size(), put), TlsSession::Io::kDone);
  ASSERT_EQ(put, text.size());
  // Another socket stands between the two.
  char record[2048];
  const int from = sockets.first.socket.native_handle();
  ASSERT_EQ(sockets.first.tls->flush(), TlsSession::Io::kDone);
  const int to = sockets.second.socket.native_handle();
  const ssize_t bytes = ::recv(to, record, sizeof record, MSG_DONTWAIT);
  ASSERT_GT(bytes, 1000);
  record[bytes / 2] ^= 1;
  ASSERT_EQ(::send(from, record, static_cast<size_t>(bytes), MSG_DONTWAIT), bytes);
  char out[2048];
  size_t got = 0;
  EXPECT_EQ(sockets.second.tls->read(out, sizeof out, got), TlsSession::Io::kFailed);
  EXPECT_THAT(sockets.second.tls->failure(), HasSubstr("bad record mac"));
}

// RFC 8446, section 5.5: a key serves a limited number of records. OpenSSL once limited the number
// of key updates, to fewer than in this test.
TEST(TlsRecords, AKeyIsRenewedAfterSoManyRecordsInBothDirections) {
  Reactor reactor;
  auto sockets = securePair(reactor.ioc);
  TlsSession &one = *sockets.first.tls, &two = *sockets.second.tls;
  EXPECT_EQ(TlsSession::kRecordsPerKey, uint64_t{1} << 24);
  one.setRecordsPerKey(3);
  const auto carry = [](TlsSession& from, TlsSession& to, const std::string& text) {
    size_t put = 0, got = 0;
    ASSERT_EQ(from.write(text.data(), text.size(), put), TlsSession::Io::kDone);
    ASSERT_EQ(from.flush(), TlsSession::Io::kDone);
    std::string room(text.size(), ' ');
    ASSERT_EQ(to.read(room.data(), room.size(), got), TlsSession::Io::kDone) << to.failure();
    EXPECT_EQ(room, text);
  };
  for (int i = 0; i < 150; ++i) {
    carry(one, two, "there " + std::to_string(i));
    carry(two, one, "and back " + std::to_string(i));
  }
  EXPECT_EQ(one.keyUpdates(), 50u);
  EXPECT_EQ(two.keyUpdates(), 0u) << "it has only answered";
}

// A peer that reads nothing costs a limited amount of memory.
TEST(TlsRecords, WhatTheSocketDoesNotTakeIsBounded) {
  Reactor reactor;
  auto sockets = securePair(reactor.ioc);
  TlsSession& tls = *sockets.first.tls;
  const std::string text(16 << 10, 'x');
  size_t put = 0, taken = 0;
  constexpr size_t kMost = 256 << 10;
  for (int flushes = 0; flushes < 100; ++flushes) {
    TlsSession::Io io = TlsSession::Io::kDone;
    while (io == TlsSession::Io::kDone) {
      io = tls.write(text.data(), text.size(), put);
      if (io == TlsSession::Io::kDone) taken += put;
      ASSERT_LT(taken, size_t{64} << 20);
    }
    ASSERT_EQ(io, TlsSession::Io::kWantWrite);
    ASSERT_EQ(tls.unsent(), kMost);
    ASSERT_LE(tls.bufferBytes(), 2 * kMost);
    if (tls.flush() == TlsSession::Io::kWantWrite && tls.unsent() == kMost) break;
  }
  EXPECT_EQ(tls.unsent(), kMost) << "nothing more leaves";
  EXPECT_EQ(tls.write(text.data(), text.size(), put), TlsSession::Io::kWantWrite);
}

// The number of a closed descriptor soon belongs to another connection.
TEST(TlsRecords, AClosedSocketIsNotReadByItsNumber) {
  Reactor reactor;
  auto sockets = securePair(reactor.ioc);
  FrameLink link(reactor.port, std::move(sockets.second));
  const int number = link.socket.native_handle();
  link.socket.close();
  int pair[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
  const Fd other(pair[0]), writer(pair[1]);
  const Fd reused(other.get() == number ? -1 : ::dup2(other.get(), number));
  ASSERT_EQ(::send(writer.get(), "not for TLS", 11, 0), 11);
  char room[64];
  error_code ec;
  EXPECT_EQ(link.readNow(asio::buffer(room), ec), 0u);
  EXPECT_EQ(ec, asio::error::bad_descriptor);
  EXPECT_EQ(::recv(number, room, sizeof room, MSG_DONTWAIT), 11);
}

}  // namespace
}  // namespace dtf::net::testing
