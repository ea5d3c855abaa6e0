#include "daemons/workerd/worker_gate.h"
#include "common/base/json.h"

#include <gtest/gtest.h>

#include "daemons/connection_set.h"
#include "tests/unit/daemons/psd/ps_world.h"

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
  daemons::ConnectionSet connections(loop, [](const void*) {});
  auto pipe = kj::newTwoWayPipe();
  connections.serve(net::wrapStream(kj::mv(pipe.ends[0])), "pipe",
                    [&](const daemons::ConnectionRef&) {
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
                         {"examples_per_second", 400.0}};
  EXPECT_EQ(ask(), starting);
  const WorkerStatus::Training training(status, nullptr);
  EXPECT_TRUE(ask().boolAt("training"));
}

}  // namespace
}  // namespace dtf::workerd
