#include "daemons/workerd/worker_gate.h"
#include "common/base/json.h"

#include <gtest/gtest.h>

#include "common/wire/connection_set.h"
#include "tests/unit/host/ps_world.h"

namespace dtf::workerd {
namespace {

TEST(WorkerGate, AnybodyMayAskForTheStatus) {
  testing::StillLoop loop;
  cluster::TaskOptions task;
  task.job.job = "some-job";
  task.task = {JobKind::kWorker, 3};
  WorkerStatus status;
  status.global_step = 41;
  status.steps = 100;
  status.loss = 0.5f;
  status.steps_per_second = 4;
  status.examples_per_second = 400;
  wire::ConnectionSet connections(loop, [](const void*) {});
  auto pipe = kj::newTwoWayPipe();
  connections.serve(net::wrapStream(kj::mv(pipe.ends[0])), "pipe", [&](const wire::ConnectionRef&) {
    return makeWorkerGate(task, status, "127.0.0.1:9400");
  });
  net::RpcConnection client(net::wrapStream(kj::mv(pipe.ends[1])), net::RpcOptions{});
  auto gate = client.bootstrap().castAs<schema::WorkerGate>();
  const auto ask = [&] {
    return Json::parse(gate.statusRequest().send().wait(loop.waitScope()).getJson().cStr());
  };
  const Json starting = {{"schema", 1},
                         {"job", "some-job"},
                         {"task", "worker/3"},
                         {"metrics", "127.0.0.1:9400"},
                         {"training", false},
                         {"global_step", 41},
                         {"steps", 100},
                         {"loss", 0.5},
                         {"steps_per_second", 4.0},
                         {"examples_per_second", 400.0},
                         {"evaluating", false},
                         {"step_ms", nullptr},
                         {"straggler", nullptr}};
  EXPECT_EQ(ask(), starting);
  WorkerStatus::Done done;
  done.progress.phases[replication::Phase::kCompute] = std::chrono::microseconds(1500);
  done.progress.straggler = {1, replication::Phase::kSend, std::chrono::microseconds(4500)};
  status.reports(done);
  EXPECT_EQ(ask()["step_ms"], Json::parse(R"({"data": 0.0, "compute": 1.5, "send": 0.0, "wait": 0.0,
                            "evaluate": 0.0})"));
  EXPECT_EQ(ask()["straggler"],
            Json::parse(R"({"worker": "worker/1", "phase": "send", "excess_ms": 4.5})"));
  const WorkerStatus::Training training(status, nullptr);
  EXPECT_TRUE(ask().boolAt("training"));
}

// A ps of one shard is the shard: its gate answers as a hosting worker's does.
TEST(WorkerGate, TheStatusOfAHostingWorkerHasThatOfItsShardToo) {
  host::PsWorld world(1, 2);
  cluster::TaskOptions task;
  task.job.job = "still";
  task.task = {JobKind::kWorker, 0};
  WorkerStatus status;
  status.global_step = 41;
  auto pipe = kj::newTwoWayPipe();
  world.server().serveControl(
      net::wrapStream(kj::mv(pipe.ends[0])), "pipe",
      [&](schema::PsGate::Client gate, const wire::ConnectionRef& connection) {
        return makeHostingGate(kj::mv(gate), makeWorkerGate(task, status, "127.0.0.1:9400"),
                               connection);
      });
  net::RpcConnection client(net::wrapStream(kj::mv(pipe.ends[1])), net::RpcOptions{});
  const auto ask = [&] {
    std::string json;
    EXPECT_EQ(
        world.refusal(client.bootstrap().castAs<schema::WorkerGate>().statusRequest().send().then(
            [&json](auto&& answer) { json = answer.getJson().cStr(); })),
        "");
    return Json::parse(json);
  };
  const Json merged = ask();
  EXPECT_EQ(merged["task"], "worker/0");
  EXPECT_EQ(merged["metrics"], "127.0.0.1:9400");
  EXPECT_EQ(merged["global_step"], 41) << "the worker's, not the shard's";
  EXPECT_EQ(merged["workers"]["worker/1"], "awaited");
  EXPECT_NE(merged["awaited"].dump().find("worker/1"), std::string::npos) << merged;
  world.server().end(Error(ErrorCode::kUnavailable, "the job has ended"), 0);
  world.loop.settle();
  const Json own = ask();
  EXPECT_EQ(own["global_step"], 41);
  EXPECT_FALSE(own.contains("workers")) << "the shard has ended";
}

}  // namespace
}  // namespace dtf::workerd
