#include "tests/bench/null_stepper.h"

#include <fmt/core.h>

#include <cstring>
#include <span>

#include "common/base/clock.h"
#include "common/base/error.h"
#include "common/replication/epoch.h"

namespace dtf::bench {

namespace {

arena::ModelDeclaration declarationOf(const cluster::JobSpec& job, uint64_t elements) {
  const auto shards = static_cast<uint32_t>(job.cluster.hosts().size());
  std::vector<arena::VariableParts> variables;
  for (uint32_t shard = 0; shard < shards; ++shard)
    variables.push_back({fmt::format("variable{}", shard),
                         Shape{static_cast<int64_t>(elements)},
                         {{shard, 0, elements}}});
  const auto workers = static_cast<uint32_t>(job.cluster.worker.size());
  arena::ModelDeclaration declaration;
  declaration.layout = arena::makeLayout(variables, shards);
  declaration.optimizer = cluster::defaultOptimizer(cluster::OptimizerSpec::Kind::kGradientDescent);
  declaration.replication = {cluster::ReplicationSpec::Mode::kSync, workers, workers};
  declaration.steps = uint64_t{1} << 40;  // never reached: the workers end the job
  return declaration;
}

wire::RpcClientOptions optionsOf(const cluster::JobSpec& job, uint32_t rank) {
  wire::RpcClientOptions options;
  options.link = wire::linkOptions(job, {JobKind::kWorker, rank}, Incarnation::ofNow());
  options.ps = wire::addressesOf(job.cluster.hosts());
  return options;
}

}  // namespace

NullStepper::NullStepper(const cluster::JobSpec& job, uint32_t rank, uint64_t elements)
    : client_(optionsOf(job, rank)) {
  const arena::ModelDeclaration declaration = declarationOf(job, elements);
  client_.declare(declaration);
  if (rank == 0) initialise(declaration.layout);
  client_.waitInitialised();
  state_ = client_.pull();
  // Written, not only zero: pages that nobody wrote are all the same page, and quick to send.
  for (uint32_t shard = 0; shard < declaration.layout.shards.size(); ++shard)
    std::memset(client_.gradients(shard), 0,
                declaration.layout.shards[shard].elements * sizeof(float));
}

void NullStepper::step() {
  state_ = pushPull(client_, state_.next_step, state_.next_batch, 0);
  if (state_.outcome != replication::Outcome::kApplied)
    throw Error(ErrorCode::kInternal, "a null step was not applied");
}

void NullStepper::initialise(const arena::ParameterLayout& layout) {
  std::vector<std::vector<float>> values;
  for (const arena::ShardLayout& shard : layout.shards) values.emplace_back(shard.elements);
  client_.initialise(std::vector<std::span<const float>>(values.begin(), values.end()),
                     replication::kFirstEpoch);
}

std::vector<double> timeSteps(int steps, const std::function<void()>& step) {
  const SystemClock clock;
  std::vector<double> seconds;
  step();
  for (int i = 0; i < steps; ++i) {
    const TimePoint start = clock.now();
    step();
    seconds.push_back(toSeconds(clock.now() - start));
  }
  return seconds;
}

}  // namespace dtf::bench
