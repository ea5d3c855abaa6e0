#include <gmock/gmock.h>

#include "common/base/random.h"
#include "tests/support/sizes.h"
#include "tests/unit/net/net_fixture.h"

// Peers that get past the preamble and then send messages that no dtf program sends. The server
// must live, keep its memory bounded, and serve others.

namespace dtf::net::testing {
namespace {

class HostilePeer : public ::testing::Test {
 protected:
  ~HostilePeer() noexcept override {}  // gtest's may not throw, kj's may
  HostilePeer()
      : host_(reactor_.port, kMiB, Limits{.bytes_max = 256 * kMiB}),
        listener_(reactor_.port, "127.0.0.1", 0, host_.onConnection()),
        honest_(reactor_.port, honestSocket()) {
    ping();
  }

  Socket honestSocket() {
    Fd fd = connectRaw(listener_.port());
    sendPreamble(fd);
    return adoptSocket(reactor_.ioc, std::move(fd));
  }
  void ping() { waitFor(reactor_, honest_.echo.pingRequest().send().ignoreResult()); }

  // Sends `bytes` behind a good preamble. Expects that connection to end and the honest one to
  // work.
  void attack(std::string_view bytes) {
    const int open_before = host_.openCount();
    const Fd fd = connectRaw(listener_.port());
    sendPreamble(fd);
    sendRaw(fd, bytes.data(), bytes.size());
    ::shutdown(fd.get(), SHUT_WR);
    runUntil(reactor_, [&] { return closed(fd); });
    runUntil(reactor_, [&] { return host_.openCount() == open_before; });
    ping();
  }

  static bool closed(const Fd& fd) {  // an Abort message may come first
    char bytes[4096];
    ssize_t got;
    while ((got = ::recv(fd.get(), bytes, sizeof(bytes), MSG_DONTWAIT)) > 0) {
    }
    return got == 0 || errno != EAGAIN;
  }

  static std::string words(std::initializer_list<uint32_t> values) {
    return std::string(reinterpret_cast<const char*>(std::data(values)),
                       values.size() * sizeof(uint32_t));
  }

  Reactor reactor_;
  EchoHost host_;
  Listener listener_;
  EchoConnection honest_;
};

TEST_F(HostilePeer, RandomBytes) {
  Random random(7);
  for (int i = 0; i < 20; ++i) {
    std::string bytes(random.below(5000), 0);
    for (char& byte : bytes) byte = static_cast<char>(random.next32());
    attack(bytes);
  }
}

TEST_F(HostilePeer, HttpBehindThePreamble) {
  attack("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
}

TEST_F(HostilePeer, SegmentCountOverflow) {
  attack(words({0xffffffff, 0, 0, 0}));
}

TEST_F(HostilePeer, OneHugeSegment) {
  attack(words({0, 0xffffffff}));
}

TEST_F(HostilePeer, FiveHundredHugeSegments) {
  std::string bytes = words({499});
  for (int i = 0; i < 501; ++i) bytes += words({0xffffffff});
  attack(bytes);
}

TEST_F(HostilePeer, FramesOfRandomWords) {
  Random random(11);
  for (int i = 0; i < 50; ++i) {
    const auto count = static_cast<uint32_t>(random.below(20));
    std::string bytes = words({0, count});
    for (uint32_t k = 0; k < count; ++k)
      bytes += words({random.next32() % 64, random.next32() % 256});
    attack(bytes);
  }
}

TEST_F(HostilePeer, AnnouncedBytesThatNeverComeCostNoMemory) {
  const size_t before = residentBytes();
  std::vector<Fd> liars;
  for (int i = 0; i < 32; ++i) {
    liars.push_back(connectRaw(listener_.port()));
    sendPreamble(liars.back());
    sendRaw(liars.back(), words({0, 200 * kMiB / 8, 1, 2, 3, 4}).data(), 24);
  }
  runUntil(reactor_, [&] { return host_.openCount() == 33; });
  ping();
  EXPECT_LT(residentBytes(),
            before + 200 * kMiB);  // of 6.4 GiB announced; each allocation touches a huge page
  liars.clear();
  runUntil(reactor_, [&] { return host_.openCount() == 1; });
}

TEST_F(HostilePeer, ConnectionsThatComeAndGoLeaveNothing) {
  for (int i = 0; i < 200; ++i) {
    const Fd fd = connectRaw(listener_.port());
    sendPreamble(fd);
    if (i % 3) sendRaw(fd, words({0, 100}).data(), 8);
  }
  ping();
  runUntil(reactor_, [&] { return host_.openCount() == 1 && listener_.pendingCount() == 0; });
}

}  // namespace
}  // namespace dtf::net::testing
