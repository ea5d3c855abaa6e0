#include "common/host/ps_service.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <functional>
#include <new>
#include <ostream>
#include <string>

#include "common/wire/model_codec.h"
#include "tests/unit/host/ps_world.h"

namespace dtf::host {
namespace {

struct NoSessions final : WorkerSessions {
  void opened(const void*, TaskId, Incarnation) override {}
  void left(uint32_t, Incarnation, const std::string&) override {}
  void jobFailed(const Error&) override {}
  void paused() override {}
  kj::Promise<void> failed() override { return kj::NEVER_DONE; }
};

// Overwrites freed memory, so that a use of it shows: malloc first reuses the blocks that were
// freed last. (M_PERTURB skips the blocks in a thread's cache.)
void overwriteFreed() {
  constexpr size_t kBlocks = 16;  // more than such a cache holds of one size
  for (size_t bytes = 16; bytes <= 1024; bytes += 16) {
    std::array<void*, kBlocks> blocks{};
    for (void*& block : blocks) block = std::memset(::operator new(bytes), 0x5a, bytes);
    for (void* block : blocks) ::operator delete(block);
  }
}

// One worker's connection to a ps whose data loop is busy until data_.run().
class PsServiceTest : public ::testing::Test {
 protected:
  PsServiceTest() {
    host_.start({.workers = 1}, std::make_unique<optimizer::InlineUpdateRunner>(), nullptr,
                nullptr);
    auto pipe = kj::newTwoWayPipe();
    connections_->serve(net::wrapStream(kj::mv(pipe.ends[0])), "pipe",
                        [this](const wire::ConnectionRef& connection) {
                          return makeGate(
                              host_, sessions_, options_,
                              [](TaskId, Incarnation, schema::SyncFollower::Client) {
                                return kj::heap<schema::SyncLeader::Server>();
                              },
                              connection);
                        });
    client_ =
        kj::heap<net::RpcConnection>(net::wrapStream(kj::mv(pipe.ends[1])), net::RpcOptions{});
  }
  ~PsServiceTest() noexcept override { host_.stop(); }

  schema::PsGate::Client gate() { return client_->bootstrap().castAs<schema::PsGate>(); }

  testing::StillLoop loop_;
  testing::BusyLoop data_{loop_};
  ShardHost host_{loop_, data_, loop_};
  const cluster::JobSpec job_ = PsWorld::job(1, 1);
  const ServiceOptions options_{
      job_.job, {JobKind::kPs, 0}, 1, wire::addressesOf(job_.cluster.worker), 1, job_.timeouts, {}};
  NoSessions sessions_;
  std::unique_ptr<wire::ConnectionSet> connections_ =
      std::make_unique<wire::ConnectionSet>(loop_, [](const void*) {});
  kj::Own<net::RpcConnection> client_;
};

arena::ModelDeclaration modelOfOneElement() {
  arena::ModelDeclaration model;
  model.layout = arena::makeLayout({{"v", Shape{1}, {{0, 0, 1}}}}, 1);
  model.steps = 1;
  return model;
}

using AskLate = std::function<kj::Promise<void>(schema::PsControl::Client&)>;
using HadEffect = std::function<bool(const shard::Shard&)>;
struct LateCall {
  std::string name;
  AskLate ask;
  HadEffect had_effect;  // on the shard, for worker/0
};

void PrintTo(const LateCall& call, std::ostream* out) {
  *out << call.name;
}

class LateCallTest : public PsServiceTest, public ::testing::WithParamInterface<LateCall> {};

// The data loop is late; meanwhile the ps answers every call with an error, and the session goes
// with its connection.
TEST_P(LateCallTest, OutlivesItsSessionAndStillNamesItsWorker) {
  auto request = gate().helloRequest();
  wire::encodeHello(wire::linkOptions(job_, {JobKind::kWorker, 0}, kOne), {JobKind::kPs, 0},
                    request.initHello());
  auto hello = request.send();
  auto control = hello.getControl();
  loop_.settle();
  data_.run();
  loop_.pass(std::chrono::seconds(1));
  auto asked = GetParam().ask(control).catch_([](kj::Exception&&) {});
  loop_.settle();
  ASSERT_EQ(data_.postedCount(), 1u);
  ASSERT_FALSE(GetParam().had_effect(host_.shard()));

  host_.failAll(Error(ErrorCode::kUnavailable, "this ps ends"));
  loop_.settle();
  connections_ = nullptr;
  loop_.settle();
  overwriteFreed();
  data_.run();
  EXPECT_TRUE(GetParam().had_effect(host_.shard()));
}

bool wasHeard(const shard::Shard& shard) {
  const replication::Member member = shard.status().members[0];
  return member.heard > member.since;
}

const LateCall kLateCalls[] = {
    {"heartbeat",
     [](schema::PsControl::Client& control) {
       return control.heartbeatRequest().send().ignoreResult();
     },
     wasHeard},
    {"requestStop",
     [](schema::PsControl::Client& control) {
       return control.requestStopRequest().send().ignoreResult();
     },
     wasHeard},
    {"finish",
     [](schema::PsControl::Client& control) {
       return control.finishRequest().send().ignoreResult();
     },
     [](const shard::Shard& shard) {
       return shard.status().members[0].state == replication::MemberState::kFinished;
     }},
    {"leave",
     [](schema::PsControl::Client& control) {
       auto request = control.failRequest();
       request.setLeaves(true);
       request.setReason("it waited in vain");
       return request.send().ignoreResult();
     },
     [](const shard::Shard& shard) {
       return shard.status().members[0].state == replication::MemberState::kLost;
     }},
    {"declare",
     [](schema::PsControl::Client& control) {
       auto request = control.declareRequest();
       wire::encodeModel(modelOfOneElement(), request.initModel());
       return request.send().ignoreResult();
     },
     [](const shard::Shard& shard) { return shard.declaration().has_value(); }},
    {"waitInitialised",
     [](schema::PsControl::Client& control) {
       return control.waitInitialisedRequest().send().ignoreResult();
     },
     wasHeard},
    {"barrier",
     [](schema::PsControl::Client& control) {
       auto request = control.barrierRequest();
       request.setName("start");
       return request.send().ignoreResult();
     },
     wasHeard},
};
INSTANTIATE_TEST_SUITE_P(PsControl, LateCallTest, ::testing::ValuesIn(kLateCalls),
                         [](const auto& call) { return call.param.name; });

// One of three tasks was started by hand without the setting.
TEST_F(PsServiceTest, AHelloWithAnotherDurabilityIsRefusedWithBoth) {
  cluster::JobSpec theirs = job_;
  theirs.durability = {cluster::Durability::kSnapshot, 20};
  capnp::MallocMessageBuilder message;
  auto hello = message.initRoot<schema::Hello>();
  wire::encodeHello(wire::linkOptions(theirs, {JobKind::kWorker, 0}, kOne), {JobKind::kPs, 0},
                    hello);
  try {
    checkHello(options_, hello.asReader());
    FAIL() << "nobody would take the snapshots that this ps is to keep";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBadConfig);
    EXPECT_EQ(error.message(),
              "worker/0 has `durability: snapshot: {every_steps: 20}`, but ps/0 has `durability: "
              "checkpoint`: start all tasks with the same cluster file, or the same --set");
  }
  ServiceOptions same = options_;
  same.durability = theirs.durability;
  EXPECT_NO_THROW(checkHello(same, hello.asReader()));
}

TEST_F(PsServiceTest, CallsUnderWayOnOneConnectionAreBounded) {
  constexpr int kCalls = 6000;
  kj::Vector<kj::Promise<void>> answered;
  auto ps = gate();
  for (int i = 0; i < kCalls; ++i)
    answered.add(ps.statusRequest().send().ignoreResult().eagerlyEvaluate(nullptr));
  loop_.settle();
  EXPECT_GT(data_.postedCount(), 100u);
  EXPECT_LT(data_.postedCount(), 3000u) << "the others are not even read";
  while (data_.postedCount() > 0) data_.run();
  for (auto& each : answered) each.wait(loop_.waitScope());
}

}  // namespace
}  // namespace dtf::host
