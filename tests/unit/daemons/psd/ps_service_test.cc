#include "daemons/psd/ps_service.h"

#include <gtest/gtest.h>
#include <malloc.h>

#include "tests/unit/daemons/psd/ps_world.h"

namespace dtf::psd {
namespace {

struct NoSessions final : WorkerSessions {
  void opened(const void*, TaskId, Incarnation) override {}
  void left(uint32_t, Incarnation, const std::string&) override {}
  void jobFailed(const Error&) override {}
  kj::Promise<void> failed() override { return kj::NEVER_DONE; }
};

// What freed memory held must not matter, so it is overwritten.
class OverwriteFreed {
 public:
  OverwriteFreed() { ::mallopt(M_PERTURB, 0x5a); }
  ~OverwriteFreed() { ::mallopt(M_PERTURB, 0); }
};

// One worker's connection to a ps whose data loop is busy until data_.run().
class PsServiceTest : public ::testing::Test {
 protected:
  PsServiceTest() {
    host_.start({.workers = 1}, std::make_unique<ps::InlineUpdateRunner>(), nullptr, nullptr);
    auto pipe = kj::newTwoWayPipe();
    connections_->serve(net::wrapStream(kj::mv(pipe.ends[0])), "pipe",
                        [this](const daemons::ConnectionRef& connection) {
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

  const OverwriteFreed overwrite_;
  testing::StillLoop loop_;
  testing::BusyLoop data_{loop_};
  ShardHost host_{loop_, data_, loop_};
  const cluster::JobSpec job_ = PsWorld::job(1, 1);
  const ServiceOptions options_{
      job_.job, {JobKind::kPs, 0}, 1, wire::addressesOf(job_.cluster.worker), 1, job_.timeouts, {}};
  NoSessions sessions_;
  std::unique_ptr<daemons::ConnectionSet> connections_ =
      std::make_unique<daemons::ConnectionSet>(loop_, [](const void*) {});
  kj::Own<net::RpcConnection> client_;
};

// The data loop is late; meanwhile the ps answers everything with an error, and the session goes
// with its connection.
TEST_F(PsServiceTest, ACallThatOutlivesItsSessionStillNamesItsWorker) {
  auto request = gate().helloRequest();
  wire::encodeHello(wire::linkOptions(job_, {JobKind::kWorker, 0}, kOne), {JobKind::kPs, 0},
                    request.initHello());
  auto hello = request.send();
  auto control = hello.getControl();
  loop_.settle();
  data_.run();
  auto finished = control.finishRequest().send().ignoreResult().catch_([](kj::Exception&&) {});
  loop_.settle();
  ASSERT_EQ(data_.postedCount(), 1u);

  host_.failAll(Error(ErrorCode::kUnavailable, "this ps ends"));
  loop_.settle();
  connections_ = nullptr;
  loop_.settle();
  data_.run();
  EXPECT_EQ(host_.shard().status().members[0].state, ps::MemberState::kFinished);
}

// Of three tasks that were started by hand, one was not told.
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
}  // namespace dtf::psd
