// `dtf-bench stragglers`: each kind of replication with batches that now and then take ten times as
// long, on equal workers. Batches only take time. The table shows the share of time spent waiting
// for other workers, and the staleness of gradients that avoids it.

#include <fmt/core.h>

#include <algorithm>
#include <thread>
#include <vector>

#include "common/base/clock.h"
#include "common/base/random.h"
#include "common/exchange/local_exchange_client.h"
#include "common/replication/epoch.h"
#include "common/replication/replication_rules.h"
#include "tests/bench/benchmarks.h"

namespace dtf::bench {

namespace {

using Mode = cluster::ReplicationSpec::Mode;

constexpr uint32_t kPs = 2, kWorkers = 8;
constexpr uint32_t kSlowOneIn = 20;
constexpr std::chrono::microseconds kBatch{4000}, kSlowBatch{40'000};
// The rate of a worker that never waits.
constexpr double kBatchesPerSecond = kSlowOneIn * 1e6 / ((kSlowOneIn - 1) * 4000 + 40'000);

arena::ModelDeclaration modelOf(const cluster::ReplicationSpec& replication, uint64_t batches) {
  std::vector<arena::VariableParts> variables;
  for (uint32_t task = 0; task < kPs; ++task)
    variables.push_back({fmt::format("v{}", task), Shape{1000}, {{task, 0, 1000}}});
  arena::ModelDeclaration model;
  model.layout = arena::makeLayout(variables, kPs);
  model.optimizer = cluster::defaultOptimizer(cluster::OptimizerSpec::Kind::kGradientDescent);
  model.replication = replication::completeReplication(replication, kWorkers);
  model.steps = batches / replication::gradientsPerStep(model.replication);
  return model;
}

struct Found {
  double used_per_second = 0;  // gradients that came into the parameters
  double staleness = 0, staleness_max = 0;
};

void work(exchange::LocalCluster& cluster, const arena::ModelDeclaration& model, uint32_t rank,
          uint64_t seed) {
  exchange::LocalExchangeClient client(cluster, rank);
  client.declare(model);
  const std::vector<float> zeros(model.layout.shards[0].elements);
  if (rank == 0)
    client.initialise(std::vector<std::span<const float>>(kPs, zeros), replication::kFirstEpoch);
  client.waitInitialised();
  Random random(seed, rank);
  client.barrier("start");
  for (replication::StepState state = client.pull(); !state.done;) {
    std::this_thread::sleep_for(random.below(kSlowOneIn) == 0 ? kSlowBatch : kBatch);
    state = pushPull(client, state.next_step, state.next_batch, 0);
  }
  client.barrier("trained");
}

Found train(const cluster::ReplicationSpec& replication, uint64_t batches, uint64_t seed) {
  const SystemClock clock;
  exchange::LocalCluster cluster(kPs, kWorkers, clock);
  const arena::ModelDeclaration model = modelOf(replication, batches);
  const TimePoint start = clock.now();
  std::vector<std::thread> workers;
  for (uint32_t rank = 0; rank < kWorkers; ++rank)
    workers.emplace_back([&, rank] { work(cluster, model, rank, seed); });
  for (std::thread& worker : workers) worker.join();
  const double seconds = toSeconds(clock.now() - start);
  const replication::CoordinatorStatus status = cluster.status(0).coordinator;
  const auto used = static_cast<double>(status.gradients_applied);
  return {used / seconds, static_cast<double>(status.staleness.sum) / used,
          static_cast<double>(status.staleness.max)};
}

}  // namespace

std::vector<Report> benchStragglers(const BenchOptions& options) {
  const std::vector<std::pair<std::string, cluster::ReplicationSpec>> kinds = {
      {"sync", {.mode = Mode::kSync}},
      {"sync, 1 backup worker", {.mode = Mode::kSync, .replicas_to_aggregate = kWorkers - 1}},
      {"sync, 2 backup workers", {.mode = Mode::kSync, .replicas_to_aggregate = kWorkers - 2}},
      {"bounded, staleness 0", {.mode = Mode::kBounded, .staleness = 0}},
      {"bounded, staleness 2", {.mode = Mode::kBounded, .staleness = 2}},
      {"bounded, staleness 8", {.mode = Mode::kBounded, .staleness = 8}},
      {"bounded, staleness 32", {.mode = Mode::kBounded, .staleness = 32}},
      {"async", {.mode = Mode::kAsync}},
  };
  std::vector<std::vector<double>> rates(kinds.size()), staleness(kinds.size()), most(kinds.size());
  for (int turn = 0; turn < options.repetitions; ++turn)
    for (size_t i = 0; i < kinds.size(); ++i) {
      const Found found =
          train(kinds[i].second, options.quick ? 160 : 4000, static_cast<uint64_t>(turn));
      rates[i].push_back(found.used_per_second);
      staleness[i].push_back(found.staleness);
      most[i].push_back(found.staleness_max);
    }
  Report report(fmt::format("{} workers whose batches take 4 ms, one in {} 40 ms (medians)",
                            kWorkers, kSlowOneIn),
                {"gradients/s", "of no waiting", "staleness", "at most"});
  for (size_t i = 0; i < kinds.size(); ++i)
    report.add(kinds[i].first, {median(rates[i]), median(rates[i]) / (kWorkers * kBatchesPerSecond),
                                median(staleness[i]), median(most[i])});
  return {report};
}

}  // namespace dtf::bench
