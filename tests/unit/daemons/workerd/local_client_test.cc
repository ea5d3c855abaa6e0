#include <gtest/gtest.h>

#include <vector>

#include "common/replication/epoch.h"
#include "daemons/workerd/worker_client.h"

namespace dtf::workerd {
namespace {

cluster::TaskOptions localTask() {
  cluster::TaskOptions task;
  task.job.run_dir = "run";
  return task;
}

// A model of one number, declared and initialised.
void begin(exchange::ExchangeClient& parameters) {
  arena::ModelDeclaration model;
  model.layout = arena::makeLayout({{"v", Shape{}, {{0, 0, 1}}}}, 1);
  model.steps = 10;
  parameters.declare(model);
  const std::vector<float> zeros(16);
  const std::vector<std::span<const float>> values = {zeros};
  parameters.job().initialise(values, replication::kFirstEpoch);
  parameters.pull();
}

// The sanitizers report a reply that touches freed memory.
TEST(LocalClient, ACutMayBeAnsweredWhenItsCheckpointsHaveGone) {
  const SystemClock clock;
  runtime::ComputePool pool(2);
  const auto client = holdParameters(localTask(), clock, pool);
  begin(client->parameters());
  auto checkpoints = client->checkpoints(1);
  CutPosition later = checkpoints->positions(false).at(0);
  later.at(0) += 5;
  checkpoints->startCut(later, replication::kFirstEpoch);
  checkpoints.reset();
  client->endWith({ErrorCode::kUnavailable, "the job ends"});
}

TEST(LocalClient, ACutThatIsCalledOffIsNotAwaited) {
  const SystemClock clock;
  runtime::ComputePool pool(2);
  const auto client = holdParameters(localTask(), clock, pool);
  begin(client->parameters());
  const auto checkpoints = client->checkpoints(1);
  CutPosition later = checkpoints->positions(false).at(0);
  later.at(0) += 5;
  checkpoints->startCut(later, replication::kFirstEpoch);
  checkpoints->callOffCuts();
  EXPECT_THROW(checkpoints->awaitCut(), Error);
  EXPECT_THROW(checkpoints->startCut(later, replication::kFirstEpoch), Error);
}

}  // namespace
}  // namespace dtf::workerd
