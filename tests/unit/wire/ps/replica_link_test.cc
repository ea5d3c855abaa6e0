// The link of a ps to the keeper of its replica: a real socket, and a keeper with the replies that
// a test sets.

#include "common/wire/ps/replica_link.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "common/net/error_bridge.h"
#include "common/net/listener.h"
#include "common/net/reactor.h"
#include "common/net/socket_options.h"
#include "common/replication/epoch.h"
#include "common/wire/arena_codec.h"
#include "common/wire/replica_codec.h"
#include "tests/support/flaky_proxy.h"

namespace dtf::wire {
namespace {

using std::chrono::milliseconds;
using FetchAnswer = std::variant<replication::ReplicaSeed, Error>;

constexpr uint64_t kElementsOfShard = 16;

// One process of the ps that keeps the replica. By default it replies as a real ps.
struct KeeperProcess {
  Incarnation incarnation;
  std::vector<std::string> calls;          // "update 7"
  std::optional<std::string> hangs;        // a call of this name is never answered
  std::optional<std::string> cuts;         // a call of this name ends its connection
  std::optional<Error> refusal;            // for every call but hellos
  std::vector<std::vector<float>> arenas;  // received, and given back

  size_t count(std::string_view call) const {
    return static_cast<size_t>(std::count(calls.begin(), calls.end(), call));
  }
};

class FakeReplica final : public schema::PsReplica::Server {
 public:
  FakeReplica(KeeperProcess& process, std::function<void()> cut)
      : process_(process), cut_(std::move(cut)) {}

 private:
  kj::Promise<void> called(const std::string& name, const std::string& what = "") {
    process_.calls.push_back(what.empty() ? name : name + " " + what);
    if (process_.cuts == name) cut_();
    if (process_.hangs == name || process_.cuts == name) return kj::NEVER_DONE;
    if (process_.refusal) net::throwAsKj(Error(*process_.refusal));
    return kj::READY_NOW;
  }
  kj::Promise<void> arena(ArenaContext context) override {
    uint64_t bytes = 0;
    for (const auto chunk : context.getParams().getValues()) bytes += chunk.size();
    const uint32_t index = context.getParams().getIndex();
    process_.arenas.resize(std::max<size_t>(process_.arenas.size(), index + 1));
    Buffer assembled;
    const std::span<const float> values =
        readArena(context.getParams().getValues(), bytes / sizeof(float), assembled);
    process_.arenas[index].assign(values.begin(), values.end());
    return called("arena", std::to_string(index));
  }
  kj::Promise<void> seed(SeedContext context) override {
    return called("seed", std::to_string(context.getParams().getState().getVersion()));
  }
  kj::Promise<void> update(UpdateContext context) override {
    return called("update", std::to_string(context.getParams().getVersion()));
  }
  kj::Promise<void> fetch(FetchContext context) override {
    encodeReplicaState({{replication::kFirstEpoch, 5}, {}, {}}, context.getResults().initState());
    context.getResults().setArenas(static_cast<uint32_t>(process_.arenas.size()));
    return called("fetch");
  }
  kj::Promise<void> fetched(FetchedContext context) override {
    const std::vector<float>& arena = process_.arenas.at(context.getParams().getIndex());
    context.getResults().initValues(1).set(
        0, kj::arrayPtr(reinterpret_cast<const kj::byte*>(arena.data()),
                        arena.size() * sizeof(float)));
    return called("fetched");
  }

  KeeperProcess& process_;
  const std::function<void()> cut_;
};

class FakeReplicaGate final : public schema::PsDataGate::Server {
 public:
  FakeReplicaGate(KeeperProcess& process, std::function<void()> cut)
      : process_(process), cut_(std::move(cut)) {}

 private:
  kj::Promise<void> replica(ReplicaContext context) override {
    process_.calls.push_back("hello");
    if (process_.hangs == "hello") return kj::NEVER_DONE;
    context.getResults().setIncarnation(process_.incarnation.value);
    context.getResults().setReplica(kj::heap<FakeReplica>(process_, cut_));
    return kj::READY_NOW;
  }
  KeeperProcess& process_;
  const std::function<void()> cut_;
};

class PsReplicaLinkTest : public ::testing::Test {
 protected:
  PsReplicaLinkTest() {
    listen(0);
    options_.job = "job";
    options_.self = {JobKind::kPs, 0};
    options_.incarnation = Incarnation{1};
    options_.timeouts.lease_seconds = 10;
    options_.timeouts.rejoin_seconds = 20;
    options_.timeouts.start_seconds = 20;
  }
  ~PsReplicaLinkTest() noexcept override {
    link_ = nullptr;
    connections_.clear();
    listener_ = nullptr;
  }

  void listen(uint16_t port) {
    listener_ = std::make_unique<net::Listener>(
        reactor_.port, "127.0.0.1", port,
        [this](net::AcceptedSocket socket, net::ConnectionKind kind, const std::string&) {
          EXPECT_EQ(kind, net::ConnectionKind::kBulk);
          net::AsioEventPort::Io io(reactor_.port);
          serve(std::move(socket));
        });
    port_ = listener_->port();
  }
  void serve(net::AcceptedSocket socket) {
    connections_.push_back(kj::heap<net::RpcConnection>(
        kj::heap<net::AsioMessageStream>(reactor_.port,
                                         net::adoptTransport(reactor_.ioc, std::move(socket)),
                                         net::Limits{}, net::BufferPool::create(0)),
        [this](net::RpcConnection&) {
          return kj::heap<FakeReplicaGate>(*now_, [this] { loop_.post([this] { cut(); }); });
        },
        net::RpcOptions{.peer = "ps/0"}));
  }

  // Ends the connections; later ones reach the current process.
  void cut() { connections_.clear(); }
  // Replaces the current process by another one.
  KeeperProcess& replaceBy(KeeperProcess& process) {
    now_ = &process;
    cut();
    return process;
  }

  PsReplicaLink& open(uint16_t port = 0) {
    link_ = std::make_unique<PsReplicaLink>(
        loop_, options_, 1, cluster::Address{"127.0.0.1", port == 0 ? port_ : port},
        PsReplicaLink::Events{[this] {
                                ++backups_;
                                if (on_backup_) on_backup_();
                              },
                              [this](uint64_t ticket) { heard_.push_back(ticket); },
                              [this](const Error& error) { lost_.push_back(error.message()); }});
    link_->open(kElementsOfShard);
    return *link_;
  }
  // Returns a link that is open and has met the first process.
  PsReplicaLink& opened() {
    PsReplicaLink& link = open();
    until([this] { return backups_ == 1; });
    return link;
  }

  // Runs the loop.
  template <class Condition>
  void until(Condition condition) {
    const auto deadline = reactor_.timer.now() + 20 * kj::SECONDS;
    while (!condition()) {
      ASSERT_TRUE(reactor_.timer.now() < deadline) << "waited in vain";
      reactor_.timer.afterDelay(1 * kj::MILLISECONDS).wait(reactor_.wait_scope);
    }
  }
  // Waits for all earlier calls: a fetch that is sent after them gets its reply.
  void fence() {
    bool answered = false;
    link_->fetch([&](const FetchAnswer&) { answered = true; });
    until([&] { return answered; });
  }

  replication::ReplicaUpdate updateTo(uint64_t version) const {
    return {replication::kFirstEpoch, version, {values_, std::make_shared<int>()}, {}};
  }
  replication::ReplicaSeed seedOf(uint64_t version) const {
    replication::ReplicaSeed seed;
    seed.state.epoch = replication::kFirstEpoch;
    seed.state.step = version;
    seed.arenas = {values_, values_};
    seed.owner = std::make_shared<int>();
    return seed;
  }

  net::Reactor reactor_;
  net::ReactorLoop loop_{reactor_};
  std::vector<float> values_ = std::vector<float>(kElementsOfShard, 3);
  KeeperProcess first_{Incarnation::of(1, 1, 1)};
  KeeperProcess second_{Incarnation::of(2, 1, 2)};
  KeeperProcess* now_ = &first_;  // answers hellos
  std::unique_ptr<net::Listener> listener_;
  std::vector<kj::Own<net::RpcConnection>> connections_;
  uint16_t port_ = 0;
  LinkOptions options_;
  int backups_ = 0;
  std::function<void()> on_backup_;
  std::vector<uint64_t> heard_;
  std::vector<std::string> lost_;
  std::unique_ptr<PsReplicaLink> link_;
};

TEST_F(PsReplicaLinkTest, ASeedComesWholeThenUpdates) {
  PsReplicaLink& link = opened();
  link.seed(1, seedOf(4));
  until([&] { return heard_.size() == 1; });
  link.update(2, updateTo(5));
  until([&] { return heard_.size() == 2; });
  EXPECT_EQ(heard_, (std::vector<uint64_t>{1, 2}));
  EXPECT_EQ(first_.calls,
            (std::vector<std::string>{"hello", "arena 0", "arena 1", "seed 4", "update 5"}));
  EXPECT_EQ(first_.arenas, (std::vector<std::vector<float>>{values_, values_}));
  EXPECT_TRUE(lost_.empty());
}

TEST_F(PsReplicaLinkTest, AMessageThatWasNotAnsweredIsSaidAgainToTheSameProcess) {
  PsReplicaLink& link = opened();
  first_.hangs = "update";
  link.update(1, updateTo(5));
  until([&] { return first_.count("update 5") == 1; });
  first_.hangs.reset();
  cut();
  until([&] { return !heard_.empty(); });
  EXPECT_EQ(first_.count("update 5"), 2u);
  EXPECT_EQ(heard_, std::vector<uint64_t>{1});
  EXPECT_EQ(backups_, 1) << "it keeps what it was sent";
}

TEST_F(PsReplicaLinkTest, AKeeperThatStopsIsAskedOnAnotherConnection) {
  options_.timeouts.lease_seconds = 1;
  PsReplicaLink& link = opened();
  first_.hangs = "update";
  link.update(1, updateTo(5));
  until([&] { return first_.count("update 5") == 2; });
  EXPECT_EQ(first_.count("hello"), 2u);
  first_.hangs.reset();
  until([&] { return !heard_.empty(); });
  EXPECT_EQ(heard_, std::vector<uint64_t>{1});
}

TEST_F(PsReplicaLinkTest, AFetchThatIsNotAnsweredIsAskedOnAnotherConnection) {
  options_.timeouts.lease_seconds = 0.2;
  PsReplicaLink& link = opened();
  first_.arenas = {values_};
  first_.hangs = "fetch";
  std::optional<FetchAnswer> answer;
  link.fetch([&](const FetchAnswer& fetched) { answer = fetched; });
  until([&] { return first_.count("fetch") == 2; });
  first_.hangs.reset();
  until([&] { return answer.has_value(); });
  EXPECT_TRUE(std::holds_alternative<replication::ReplicaSeed>(*answer));
}

// A seed of 24 MiB through a network of some MiB a second takes longer than the lease, which is
// long enough for a busy machine.
TEST_F(PsReplicaLinkTest, AKeeperWhoseNetworkIsSlowIsNotGivenUpWhileBytesGetThere) {
  options_.timeouts.lease_seconds = 2;
  options_.timeouts.rejoin_seconds = 0.1;
  options_.timeouts.step_seconds = 0.1;
  testing::FlakyProxy slow(port_);
  slow.slowDown(milliseconds(10));
  PsReplicaLink& link = open(slow.port());
  until([this] { return backups_ == 1; });
  values_.assign(6 << 20, 1);
  const auto begin = reactor_.timer.now();
  replication::ReplicaSeed seed = seedOf(4);
  seed.arenas = {values_};
  link.seed(1, seed);
  until([&] { return !heard_.empty() || !lost_.empty(); });
  EXPECT_EQ(lost_, std::vector<std::string>{});
  EXPECT_EQ(first_.count("seed 4"), 1u);
  EXPECT_EQ(first_.count("hello"), 1u) << "on one connection";
  EXPECT_GT((reactor_.timer.now() - begin) / kj::MILLISECONDS, 2000) << "or nothing was slow";
}

// ---- another process

TEST_F(PsReplicaLinkTest, WhatWasCalledOffIsNotSaidToTheSuccessor) {
  PsReplicaLink& link = opened();
  first_.hangs = "update";
  link.update(1, updateTo(5));
  until([&] { return first_.count("update 5") == 1; });
  replaceBy(second_);
  until([&] { return backups_ == 2; });
  fence();  // all earlier calls have arrived
  EXPECT_EQ(second_.calls, (std::vector<std::string>{"hello", "fetch"}));
  link.seed(2, seedOf(5));
  until([&] { return !heard_.empty(); });
  EXPECT_EQ(heard_, std::vector<uint64_t>{2});
  EXPECT_EQ(second_.count("update 5"), 0u);
}

TEST_F(PsReplicaLinkTest, TheSuccessorIsSeededWhenItIsMet) {
  PsReplicaLink& link = opened();
  on_backup_ = [&] { link.seed(2, seedOf(6)); };
  first_.hangs = "seed";
  link.seed(1, seedOf(5));
  until([&] { return first_.count("seed 5") == 1; });
  replaceBy(second_);
  until([&] { return !heard_.empty(); });
  EXPECT_EQ(heard_, std::vector<uint64_t>{2});
  EXPECT_EQ(second_.calls, (std::vector<std::string>{"hello", "arena 0", "arena 1", "seed 6"}));
}

// The successor answers the hello and is gone before the link sends it anything; then comes the
// next.
TEST_F(PsReplicaLinkTest, AProcessThatIsReplacedBetweenItsHelloAndItsSeedGetsNothing) {
  KeeperProcess third{Incarnation::of(3, 1, 3)};
  PsReplicaLink& link = opened();
  uint64_t ticket = 0;
  on_backup_ = [&] {
    if (backups_ == 2) replaceBy(third);
    ++ticket;
    link.seed(ticket, seedOf(ticket));
  };
  replaceBy(second_);
  until([&] { return !heard_.empty(); });
  EXPECT_EQ(heard_, std::vector<uint64_t>{2});
  EXPECT_EQ(second_.calls, std::vector<std::string>{"hello"});
  EXPECT_EQ(third.calls, (std::vector<std::string>{"hello", "arena 0", "arena 1", "seed 2"}));
}

TEST_F(PsReplicaLinkTest, AnEarlierProcessThatAnswersAgainIsNotTaken) {
  PsReplicaLink& link = opened();
  replaceBy(second_);
  until([&] { return backups_ == 2; });
  replaceBy(first_);
  until([&] { return first_.count("hello") >= 3; });
  link.seed(1, seedOf(5));
  replaceBy(second_);
  until([&] { return !heard_.empty(); });
  EXPECT_EQ(backups_, 2);
  EXPECT_EQ(first_.count("seed 5"), 0u);
  EXPECT_EQ(second_.count("seed 5"), 1u);
}

// ---- back

TEST_F(PsReplicaLinkTest, SeveralFetchesAtOnceAreOneQuestion) {
  PsReplicaLink& link = opened();
  first_.arenas = {values_, std::vector<float>(kElementsOfShard, 4)};
  first_.hangs = "fetched";
  std::vector<FetchAnswer> answers;
  for (int i = 0; i < 3; ++i)
    link.fetch([&](const FetchAnswer& answer) { answers.push_back(answer); });
  until([&] { return first_.count("fetched") == 2; });
  EXPECT_EQ(first_.count("fetch"), 1u);
  first_.hangs.reset();
  cut();  // the fetch is repeated from the start
  until([&] { return answers.size() == 3; });
  EXPECT_EQ(first_.count("fetch"), 2u);
  for (const FetchAnswer& answer : answers) {
    const auto& seed = std::get<replication::ReplicaSeed>(answer);
    EXPECT_EQ(seed.state.step, 5u);
    ASSERT_EQ(seed.arenas.size(), 2u);
    EXPECT_EQ(seed.arenas[1][15], 4);
  }
}

// A checkpoint's thread may be the last to release it, long after the connection is gone.
TEST_F(PsReplicaLinkTest, WhatCameBackOutlivesTheLinkOnAnyThread) {
  PsReplicaLink& link = opened();
  first_.arenas = {values_, std::vector<float>(kElementsOfShard, 4)};
  std::optional<replication::ReplicaSeed> seed;
  link.fetch([&](const FetchAnswer& answer) { seed = std::get<replication::ReplicaSeed>(answer); });
  until([&] { return seed.has_value(); });
  link_ = nullptr;
  ASSERT_EQ(seed->owners.size(), 2u);
  EXPECT_NE(seed->owners[0], seed->owners[1]) << "the slots need not be kept for the parameters";
  std::thread([&] {
    EXPECT_EQ(seed->arenas[1][15], 4);
    seed.reset();
  }).join();
}

TEST_F(PsReplicaLinkTest, AFetchAfterARefusalAsksAnew) {
  PsReplicaLink& link = opened();
  first_.refusal = Error(ErrorCode::kUnavailable, "nothing is kept");
  std::vector<std::string> errors;
  const auto note = [&](const FetchAnswer& answer) {
    const Error* error = std::get_if<Error>(&answer);
    errors.push_back(error != nullptr ? error->message() : "");
  };
  link.fetch(note);
  link.fetch(note);
  until([&] { return errors.size() == 2; });
  EXPECT_EQ(errors, (std::vector<std::string>{"nothing is kept", "nothing is kept"}));
  first_.refusal.reset();
  first_.arenas = {values_};
  link.fetch(note);
  until([&] { return errors.size() == 3; });
  EXPECT_EQ(errors[2], "");
  EXPECT_TRUE(lost_.empty()) << "the chief decides what follows";
}

// ---- the end

TEST_F(PsReplicaLinkTest, AKeeperThatStaysAwayIsLostOnceByName) {
  options_.timeouts.lease_seconds = 0.1;
  options_.timeouts.rejoin_seconds = 0.2;
  PsReplicaLink& link = opened();
  link.seed(1, seedOf(5));
  until([&] { return !heard_.empty(); });
  listener_ = nullptr;
  cut();
  link.update(2, updateTo(6));
  std::optional<FetchAnswer> answer;
  link.fetch([&](const FetchAnswer& fetched) { answer = fetched; });
  until([&] { return !lost_.empty() && answer.has_value(); });
  fence();
  ASSERT_EQ(lost_.size(), 1u);
  EXPECT_TRUE(lost_[0].starts_with("ps/0 lost ps/1 (127.0.0.1:" + std::to_string(port_) +
                                   "), which keeps its replica: "))
      << lost_[0];
  EXPECT_TRUE(std::holds_alternative<Error>(*answer));
  EXPECT_EQ(heard_, std::vector<uint64_t>{1});
}

TEST_F(PsReplicaLinkTest, AKeeperThatBreaksEveryConnectionIsGivenUp) {
  options_.timeouts.rejoin_seconds = 0.2;
  options_.timeouts.step_seconds = 0.2;
  PsReplicaLink& link = opened();
  first_.cuts = "update";
  link.update(1, updateTo(5));
  until([&] { return !lost_.empty(); });
  EXPECT_TRUE(heard_.empty());
  EXPECT_GE(first_.count("update 5"), 2u);
  EXPECT_NE(lost_[0].find("while replicating"), std::string::npos) << lost_[0];
}

}  // namespace
}  // namespace dtf::wire
