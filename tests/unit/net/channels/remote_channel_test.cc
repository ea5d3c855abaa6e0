#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "common/base/error.h"
#include "common/net/buffer_pool.h"
#include "common/net/connector.h"
#include "common/net/error_bridge.h"
#include "common/net/message_stream.h"
#include "common/net/reactor.h"
#include "tests/support/process.h"
#include "tests/unit/net/channels/remote_arena.h"

namespace dtf::net {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;

std::string nameOf(const ::testing::TestParamInfo<std::string>& transports) {
  std::string name = transports.param;
  std::replace(name.begin(), name.end(), ',', '_');
  return name;
}

void fill(const Arena& arena, uint32_t seed) {
  auto* const values = arena.buffer->as<uint32_t>();
  for (size_t i = 0; i < arena.buffer->bytes() / sizeof *values; ++i)
    values[i] = seed + static_cast<uint32_t>(i) * 2654435761U;
}

bool areEqual(const Arena& a, const Arena& b, size_t bytes = kBytes) {
  return std::memcmp(a.buffer->data(), b.buffer->data(), bytes) == 0;
}

RemoteWait wait(const std::string& what, Duration deadline = seconds(20)) {
  return {what, deadline};
}

std::string errorOf(Reactor& reactor, kj::Promise<void> promise) {
  return promise
      .then(
          [] { return std::string(); },
          [](kj::Exception&& exception) { return std::string(exception.getDescription().cStr()); })
      .wait(reactor.wait_scope);
}

template <class Fn>
std::string badDataOf(Fn fn) {
  try {
    fn();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBadData) << error.message();
    return error.message();
  }
  return "no error";
}

class RemoteMemory : public ::testing::TestWithParam<std::string> {
 protected:
  ~RemoteMemory() noexcept override = default;

  void SetUp() override {
    if (const std::string reason = absence(GetParam()); !reason.empty()) GTEST_SKIP() << reason;
    transports_.emplace(GetParam());
    domain_ = RemoteDomain::open();
    near_ = RemoteChannel::open(loop_, domain_);
    far_ = RemoteChannel::open(loop_, domain_);
    near_->connect(far_->address());
  }

  std::optional<UcxTransports> transports_;
  Reactor reactor_;
  ReactorLoop loop_{reactor_};
  std::shared_ptr<RemoteDomain> domain_;
  std::unique_ptr<RemoteChannel> near_, far_;
};

TEST_P(RemoteMemory, ValuesArePutIntoTheOtherEndAndGotFromIt) {
  const Arena here(*domain_), there(*domain_), back(*domain_);
  near_->learn(there.named(kKey));
  EXPECT_NE(near_->transports(), "");
  EXPECT_FALSE(areCards(near_->transports())) << near_->transports();
  for (uint32_t turn = 1; turn <= 3; ++turn) {
    fill(here, turn);
    near_->put(wait("to put"), here.registered, kBytes, kKey).wait(reactor_.wait_scope);
    EXPECT_TRUE(areEqual(here, there)) << turn;
    near_->get(wait("to get"), back.registered, kBytes, kKey).wait(reactor_.wait_scope);
    EXPECT_TRUE(areEqual(here, back)) << turn;
  }
}

TEST_P(RemoteMemory, APartMovesAsFarAsItIsAskedFor) {
  const Arena here(*domain_), there(*domain_);
  near_->learn(there.named(kKey));
  fill(here, 1);
  fill(there, 2);
  std::byte* const behind = there.buffer->as<std::byte>() + 64;
  const std::byte before = *behind;
  near_->put(wait("to put"), here.registered, 64, kKey).wait(reactor_.wait_scope);
  EXPECT_TRUE(areEqual(here, there, 64));
  EXPECT_EQ(*behind, before);
}

TEST_P(RemoteMemory, MemoryOutsideOfWhatIsKnownIsRefused) {
  const Arena here(*domain_), there(*domain_, 4096);
  near_->learn(there.named(kKey));
  const auto put = [&](uint64_t bytes, uint64_t key) {
    return badDataOf([&] { near_->put(wait("to put"), here.registered, bytes, key); });
  };
  EXPECT_THAT(put(4097, kKey), HasSubstr("of which a peer has 4096"));
  EXPECT_THAT(put(64, kKey + 1), HasSubstr("is not known"));
  near_->forget(kKey);
  EXPECT_FALSE(near_->knows(kKey));
  EXPECT_THAT(put(64, kKey), HasSubstr("is not known"));
}

TEST_P(RemoteMemory, ArenasThatAreNoneAreRefusedBeforeUcxReadsThem) {
  const Arena there(*domain_);
  RemoteArena arena = there.named(kKey);
  const auto learn = [&] { return badDataOf([&] { near_->learn(arena); }); };
  arena.bytes = ~uint64_t{0};
  EXPECT_THAT(learn(), HasSubstr("an arena that is none"));
  arena = there.named(0);
  EXPECT_THAT(learn(), HasSubstr("an arena that is none"));
  arena = there.named(kKey);
  arena.card_key.resize(4);
  EXPECT_THAT(learn(), HasSubstr("it has 4 bytes"));
  EXPECT_THAT(badDataOf([&] {
                auto channel = RemoteChannel::open(loop_, domain_);
                channel->connect(std::vector<std::byte>(kRemoteAddressBytesMax + 1));
              }),
              HasSubstr("an address for RDMA of 16385 bytes"));
}

// The other end is not served: its loop is this one, and it is gone.
TEST_P(RemoteMemory, AfterTheOtherEndIsGoneAnOperationFailsWithItsNameWithinItsDeadline) {
  const Arena here(*domain_), there(*domain_);
  near_->learn(there.named(kKey));
  near_->put(wait("to put"), here.registered, kBytes, kKey).wait(reactor_.wait_scope);
  far_ = nullptr;
  const SystemClock clock;
  const TimePoint before = clock.now();
  std::string error;
  // UCX may move what needs nobody's help, until it sees the end.
  for (int i = 0; i < 50 && error.empty(); ++i)
    error = errorOf(reactor_, near_->put(wait("to put a gradient into ps/1", milliseconds(500)),
                                         here.registered, kBytes, kKey));
  if (error.empty()) GTEST_SKIP() << "this transport needs nobody at the other end";
  EXPECT_THAT(error, HasSubstr("RDMA to put a gradient into ps/1: "));
  EXPECT_LT(clock.now() - before, seconds(20));
  EXPECT_THAT(errorOf(reactor_, near_->get(wait("to get"), here.registered, kBytes, kKey)),
              HasSubstr("RDMA to get: "));
}

INSTANTIATE_TEST_SUITE_P(Ucx, RemoteMemory,
                         ::testing::Values("tcp", "tcp,self", "posix", "posix,cma", "sysv",
                                           "sysv,cma,self"),
                         nameOf);

// ---- two processes

std::string hexOf(std::span<const std::byte> bytes) {
  std::string text;
  for (const std::byte each : bytes) text += fmt::format("{:02x}", static_cast<unsigned>(each));
  return text;
}

std::vector<std::byte> bytesOf(const std::string& hex) {
  std::vector<std::byte> bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2)
    bytes.push_back(static_cast<std::byte>(std::stoul(hex.substr(i, 2), nullptr, 16)));
  return bytes;
}

// The other process of the tests below: it prints its address and an arena, and serves them until
// it is killed.
TEST(RemoteMemoryPeer, DISABLED_Serves) {
  Reactor reactor;
  ReactorLoop loop(reactor);
  const auto domain = RemoteDomain::open();
  const auto channel = RemoteChannel::open(loop, domain);
  const Arena arena(*domain);
  fill(arena, 3);
  const RemoteArena named = arena.named(kKey);
  std::puts(fmt::format("peer {} {} {} {} end", hexOf(channel->address()), named.address,
                        named.bytes, hexOf(named.card_key))
                .c_str());
  std::fflush(stdout);
  kj::NEVER_DONE.wait(reactor.wait_scope);
}

// A loop that polls a channel, for tests that look for themselves.
class PollingLoop final : public Loop {
 public:
  explicit PollingLoop(Reactor& reactor) : loop_(reactor) {}
  const Clock& clock() const override { return loop_.clock(); }
  kj::Timer& timer() override { return loop_.timer(); }
  void post(std::function<void()> fn) override { loop_.post(std::move(fn)); }
  bool addPolled(Polled& added) override {
    polled = &added;
    return true;
  }
  void removePolled(Polled&) override { polled = nullptr; }
  std::unique_ptr<DescriptorWatch> watch(int fd, std::function<void()> ready) override {
    return loop_.watch(fd, std::move(ready));
  }
  kj::Promise<kj::Own<MessageStream>> connect(std::string host, uint16_t port,
                                              ConnectOptions options, const Limits& limits,
                                              std::shared_ptr<BufferPool> pool) override {
    return loop_.connect(std::move(host), port, std::move(options), limits, std::move(pool));
  }

  Polled* polled = nullptr;

 private:
  ReactorLoop loop_;
};

class TwoProcesses : public ::testing::TestWithParam<std::string> {
 protected:
  ~TwoProcesses() noexcept override = default;

  void SetUp() override {
    if (const std::string reason = absence(GetParam()); !reason.empty()) GTEST_SKIP() << reason;
    transports_.emplace(GetParam());
    peer_.emplace(std::vector<std::string>{std::filesystem::read_symlink("/proc/self/exe"),
                                           "--gtest_filter=RemoteMemoryPeer.DISABLED_Serves",
                                           "--gtest_also_run_disabled_tests"},
                  std::map<std::string, std::string>{{"UCX_TLS", GetParam()}});
    ASSERT_TRUE(peer_->waitForOutput(" end\n", seconds(20))) << peer_->out() << peer_->err();
    const std::string out = peer_->out();
    std::istringstream text(out.substr(out.find("peer ") + 5));
    std::string address, card_key;
    RemoteArena arena{.key = kKey};
    text >> address >> arena.address >> arena.bytes >> card_key;
    arena.card_key = bytesOf(card_key);
    domain_ = RemoteDomain::open();
    channel_ = RemoteChannel::open(loop_, domain_);
    channel_->connect(bytesOf(address));
    channel_->learn(arena);
  }

  std::optional<UcxTransports> transports_;
  std::optional<dtf::testing::Process> peer_;
  Reactor reactor_;
  PollingLoop loop_{reactor_};
  std::shared_ptr<RemoteDomain> domain_;
  std::unique_ptr<RemoteChannel> channel_;
};

TEST_P(TwoProcesses, ValuesMoveBetweenThem) {
  const Arena here(*domain_), back(*domain_);
  fill(here, 3);
  channel_->get(wait("to get"), back.registered, kBytes, kKey).wait(reactor_.wait_scope);
  EXPECT_TRUE(areEqual(here, back));
  fill(here, 4);
  channel_->put(wait("to put"), here.registered, kBytes, kKey).wait(reactor_.wait_scope);
  channel_->get(wait("to get"), back.registered, kBytes, kKey).wait(reactor_.wait_scope);
  EXPECT_TRUE(areEqual(here, back));
}

TEST_P(TwoProcesses, APeerThatIsKilledInATransferIsAnErrorWithTheNameOfTheTransfer) {
  const Arena here(*domain_);
  const SystemClock clock;
  std::string error;
  const auto put = [&](Duration deadline) {
    return channel_->put(wait("to put a gradient into ps/1", deadline), here.registered, kBytes,
                         kKey);
  };
  for (int i = 0; i < 3; ++i) ASSERT_EQ(errorOf(reactor_, put(seconds(20))), "");
  auto last = put(milliseconds(1500));
  peer_->signal(SIGKILL);
  const TimePoint killed = clock.now();
  error = errorOf(reactor_, kj::mv(last));
  for (int i = 0; i < 200 && error.empty(); ++i) error = errorOf(reactor_, put(milliseconds(1500)));
  EXPECT_THAT(error, HasSubstr("RDMA to put a gradient into ps/1: "));
  EXPECT_LT(clock.now() - killed, seconds(20));
  channel_ = nullptr;  // with operations under way
}

TEST_P(TwoProcesses, APeerThatIsStoppedIsAnErrorAtTheDeadline) {
  const Arena here(*domain_);
  channel_->put(wait("to put"), here.registered, kBytes, kKey).wait(reactor_.wait_scope);
  peer_->signal(SIGSTOP);
  std::string error;
  for (int i = 0; i < 50 && error.empty(); ++i)
    error = errorOf(
        reactor_, channel_->put(wait("to put", milliseconds(300)), here.registered, kBytes, kKey));
  // UCX still has the put. That is no reason for the loop to stay awake.
  ASSERT_NE(loop_.polled, nullptr);
  bool is_awake = true;
  for (int i = 0; i < 1000 && is_awake; ++i)
    is_awake = loop_.polled->poll() || loop_.polled->beforeSleep();
  peer_->signal(SIGCONT);
  if (error.empty()) GTEST_SKIP() << "this transport needs nobody at the other end";
  EXPECT_THAT(error, HasSubstr("RDMA to put: waited 0.3 s for it"));
  EXPECT_FALSE(is_awake);
}

INSTANTIATE_TEST_SUITE_P(Ucx, TwoProcesses, ::testing::Values("tcp", "posix", "posix,cma", "sysv"),
                         nameOf);

}  // namespace
}  // namespace dtf::net
