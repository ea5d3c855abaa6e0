#include "common/host/hosted_shard.h"

#include <gtest/gtest.h>

#include <csignal>

#include "tests/support/temporary_files.h"

namespace dtf::host {
namespace {

cluster::TaskOptions workerWithoutPs(uint32_t rank) {
  cluster::TaskOptions task;
  task.task = {JobKind::kWorker, rank};
  task.job.cluster.worker.resize(3);
  return task;
}

// A worker is the ps of its rank's shard, under its own name.
TEST(HostedShard, AWorkerHostsTheShardOfItsRank) {
  const testing::TemporaryFiles files;
  net::Reactor reactor;
  net::ReactorLoop loop(reactor);
  HostedShard shard(workerWithoutPs(2), reactor, loop, {});
  const ServiceOptions& options = shard.server().options();
  EXPECT_EQ(options.self, (TaskId{JobKind::kPs, 2}));
  EXPECT_EQ(options.name(), "worker/2");
  EXPECT_EQ(options.ps_tasks, 3u);
  EXPECT_EQ(options.workers, 3u);
  EXPECT_EQ(options.taskOf({JobKind::kWorker, 1}).name(), "worker/1");
}

TEST(HostedShard, BesidePsAWorkerHostsAShardBehindTheirs) {
  const testing::TemporaryFiles files;
  net::Reactor reactor;
  net::ReactorLoop loop(reactor);
  cluster::TaskOptions task = workerWithoutPs(1);
  task.job.cluster.ps.resize(2);
  task.job.cluster.hybrid = true;
  HostedShard shard(task, reactor, loop, {});
  const ServiceOptions& options = shard.server().options();
  EXPECT_EQ(options.self, (TaskId{JobKind::kPs, 3}));
  EXPECT_EQ(options.name(), "worker/1");
  EXPECT_EQ(options.ps_tasks, 5u);
  EXPECT_EQ(options.taskOf({JobKind::kPs, 1}).name(), "ps/1");
}

TEST(HostedShard, EndsAtASignalBeforeAnybodyCame) {
  const testing::TemporaryFiles files;
  net::Reactor reactor;
  net::ReactorLoop loop(reactor);
  HostedShard shard(workerWithoutPs(0), reactor, loop, {});
  bool ending = false;
  shard.server().start([&] { ending = true; }, [&] { reactor.stop(); });
  loop.post([&] { shard.server().onSignal(SIGTERM); });
  reactor.run();
  EXPECT_TRUE(ending);
  EXPECT_EQ(shard.result(), 0);
}

}  // namespace
}  // namespace dtf::host
