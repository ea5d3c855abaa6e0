#include "common/net/channels/remote_memory.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "common/base/error.h"
#include "common/net/error_bridge.h"
#include "common/net/reactor.h"
#include "tests/support/process.h"

namespace dtf::net {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;

constexpr size_t kBytes = size_t{3} << 20;
constexpr uint64_t kKey = 7;

// Chooses the transports for the next domain: each is made with the environment of its time.
class UcxTransports {
 public:
  explicit UcxTransports(const std::string& transports) {
    ::setenv("UCX_TLS", transports.c_str(), 1);
  }
  ~UcxTransports() { ::unsetenv("UCX_TLS"); }
};

// The reason why this process has no UCX; empty: it has.
std::string absence() {
  const UcxTransports tcp("tcp");
  try {
    RemoteDomain::open();
  } catch (const Error& error) {
    return error.message();
  }
  return {};
}

std::string nameOf(const ::testing::TestParamInfo<std::string>& transports) {
  std::string name = transports.param;
  std::replace(name.begin(), name.end(), ',', '_');
  return name;
}

// Bytes that several may hold.
class Memory {
 public:
  explicit Memory(size_t bytes) : words_(bytes / sizeof(uint64_t)) {}
  template <class T>
  T* as() {
    return reinterpret_cast<T*>(words_.data());
  }
  std::byte* data() { return as<std::byte>(); }
  size_t bytes() const { return words_.size() * sizeof(uint64_t); }

 private:
  std::vector<uint64_t> words_;
};

struct Arena {
  explicit Arena(RemoteDomain& domain, size_t bytes = kBytes)
      : buffer(std::make_shared<Memory>(bytes)),
        registered(
            domain.registered({buffer->as<std::byte>(), bytes}, buffer, RemoteAccess::kWrite)) {}
  RemoteArena named(uint64_t key) const {
    RemoteArena arena = registered->arena();
    arena.key = key;
    return arena;
  }
  std::shared_ptr<Memory> buffer;
  std::shared_ptr<const RegisteredMemory> registered;
};

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
    if (const std::string reason = absence(); !reason.empty()) GTEST_SKIP() << reason;
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

TEST_P(RemoteMemory, AnArenaIsRegisteredOnceAndReleasedWithItsOwner) {
  std::optional<Arena> first(*domain_);
  const size_t before = domain_->TEST_registrations();
  const auto again = domain_->registered({first->buffer->as<std::byte>(), kBytes}, first->buffer,
                                         RemoteAccess::kWrite);
  EXPECT_EQ(again, first->registered);
  EXPECT_EQ(domain_->TEST_registrations(), before);
  first.reset();
  const Arena second(*domain_);  // `again` still holds the first one
  EXPECT_EQ(domain_->TEST_registrations(), before + 1);
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
  EXPECT_THAT(errorOf(reactor_, kj::evalNow([&] {
                        return near_->get(wait("to get"), here.registered, kBytes, kKey);
                      })),
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

// Not a test, but the other process of those below: it prints its address and an arena, and serves
// them until it is killed.
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

class TwoProcesses : public ::testing::TestWithParam<std::string> {
 protected:
  ~TwoProcesses() noexcept override = default;

  void SetUp() override {
    if (const std::string reason = absence(); !reason.empty()) GTEST_SKIP() << reason;
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
  ReactorLoop loop_{reactor_};
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
  TimePoint killed{};
  std::string error;
  for (int i = 0; i < 200 && error.empty(); ++i) {
    auto put = channel_->put(wait("to put a gradient into ps/1", milliseconds(1500)),
                             here.registered, kBytes, kKey);
    if (i == 3) {
      peer_->signal(SIGKILL);
      killed = clock.now();
    }
    error = errorOf(reactor_, kj::mv(put));
  }
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
  peer_->signal(SIGCONT);
  if (error.empty()) GTEST_SKIP() << "this transport needs nobody at the other end";
  EXPECT_THAT(error, HasSubstr("RDMA to put: waited 0.3 s for it"));
}

INSTANTIATE_TEST_SUITE_P(Ucx, TwoProcesses, ::testing::Values("tcp", "posix", "posix,cma", "sysv"),
                         nameOf);

// ---- without a card

TEST(RemoteDomain, AHostWithoutACardIsRefusedUnlessTransportsAreNamed) {
  if (const std::string reason = absence(); !reason.empty()) GTEST_SKIP() << reason;
  if (std::filesystem::exists("/sys/class/infiniband")) GTEST_SKIP() << "this host has a card";
  ::unsetenv("UCX_TLS");
  try {
    RemoteDomain::open();
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
    EXPECT_THAT(error.message(), HasSubstr("a network card with RDMA is needed"));
  }
  const UcxTransports none("no_such_transport");
  EXPECT_THROW(RemoteDomain::open(), Error);
}

TEST(RemoteDomain, ItsTextNamesTheVersionAndTheTransports) {
  if (const std::string reason = absence(); !reason.empty()) GTEST_SKIP() << reason;
  const UcxTransports tcp("tcp");
  EXPECT_THAT(RemoteDomain::open()->text(), ::testing::MatchesRegex("UCX .*, UCX_TLS=tcp"));
}

// UCX reads card keys without a bound.
TEST(CardKey, EveryPartHasToBeWithinItsBytes) {
  const auto key = [](uint64_t map, std::vector<int> rest) {
    std::vector<std::byte> bytes(sizeof map);
    std::memcpy(bytes.data(), &map, sizeof map);
    for (const int each : rest) bytes.push_back(static_cast<std::byte>(each));
    return bytes;
  };
  EXPECT_EQ(cardKeyFault(key(0, {0})), "");
  EXPECT_EQ(cardKeyFault(key(1, {0, 2, 8, 9})), "");
  EXPECT_EQ(cardKeyFault(key(3, {0, 2, 8, 9, 0})), "");
  EXPECT_THAT(cardKeyFault(key(1, {0})), HasSubstr("it ends within a part"));
  EXPECT_THAT(cardKeyFault(key(1, {0, 3, 8, 9})), HasSubstr("it ends within a part"));
  EXPECT_THAT(cardKeyFault(key(~uint64_t{0}, {0, 1, 1})), HasSubstr("it ends within a part"));
  EXPECT_THAT(cardKeyFault(key(1, {1, 0})), HasSubstr("no host's"));
  EXPECT_THAT(cardKeyFault({}), HasSubstr("it has 0 bytes"));
  EXPECT_THAT(cardKeyFault(std::vector<std::byte>(kCardKeyBytesMax + 1)), HasSubstr("4097 bytes"));
}

}  // namespace
}  // namespace dtf::net
