#include "tests/unit/train/job.h"

#include <span>
#include <string>

#include "common/replication/barrier.h"
#include "common/replication/epoch.h"
#include "common/train/initial_values.h"
#include "common/train/worker_devices.h"

namespace dtf::train {

namespace {

// One worker from start to end; the chief also reports and evaluates.
void work(TrainingLoop& loop, exchange::ExchangeClient& client, bool chief, bool evaluates,
          TrainingResult& result, JobResult& job) {
  loop.join();
  client.job().barrier(replication::kStartBarrier);
  result = loop.run([&](const Progress& progress) {
    if (chief) job.progress.push_back(progress);
  });
  client.job().barrier(replication::trainedBarrier(replication::kFirstEpoch));
  if (chief) {
    if (evaluates) job.evaluation = loop.evaluate();
    client.pull();
    const std::vector<arena::ShardLayout>& shards = loop.declaration().layout.shards;
    for (uint32_t ps = 0; ps < shards.size(); ++ps)
      job.parameters.emplace_back(
          client.view(exchange::Values::kParameters, ps),
          client.view(exchange::Values::kParameters, ps) + shards[ps].elements);
  }
  client.job().leave();
}

}  // namespace

BoundParameters::BoundParameters(const cluster::TrainSpec& train) {
  const model::ModelGraph model = trainingGraphOf(train);
  const arena::ParameterLayout layout = layoutOf(model, placeModel(model.graph, {}, 1, 0));
  client_.declare(declarationOf(train, layout, 1));
  const std::vector<Buffer> arenas = initialArenas(model, layout, train.data.seed);
  const std::span<const float> arena(arenas.at(0).as<float>(), arenas[0].bytes() / sizeof(float));
  client_.initialise(std::span(&arena, 1), replication::kFirstEpoch);
  client_.pull();
  binding_.emplace(layout, client_);
  binding_->gatherValues();
}

JobResult runJob(const cluster::TrainSpec& train, const TasksOfJob& size,
                 std::shared_ptr<const data::Dataset> dataset,
                 std::shared_ptr<const data::Dataset> eval) {
  const SystemClock clock;
  std::vector<std::string> devices;
  for (uint32_t i = 0; i < size.towers; ++i) devices.push_back("cpu:" + std::to_string(i));
  exchange::LocalCluster cluster(size.ps_tasks, size.workers, clock, std::chrono::seconds(20));
  JobResult job;
  job.workers.resize(size.workers);
  std::vector<std::exception_ptr> errors(size.workers);
  {
    std::vector<Thread> threads;
    for (uint32_t rank = 0; rank < size.workers; ++rank) {
      threads.emplace_back("worker", [&, rank] {
        try {
          WorkerDevices own(devices, size.threads, runtime::tableRule());
          exchange::LocalExchangeClient client(cluster, rank);
          TrainingLoop loop(train, {rank, size.workers, size.ps_tasks}, dataset, client,
                            own.kernels(), own.device(), clock, own.towers());
          if (rank == 0 && eval) loop.evaluateOn(eval);
          work(loop, client, rank == 0, eval != nullptr, job.workers[rank], job);
        } catch (...) {
          errors[rank] = std::current_exception();
          cluster.loseWorker(rank);
        }
      });
    }
  }
  for (const std::exception_ptr& error : errors)
    if (error) std::rethrow_exception(error);
  return job;
}

}  // namespace dtf::train
