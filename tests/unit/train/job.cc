#include "tests/unit/train/job.h"

#include "common/ps/barrier.h"
#include "common/ps/epoch.h"

namespace dtf::train {

namespace {

// One worker from start to end; the chief also reports and evaluates.
void work(TrainingLoop& loop, ps::ParameterClient& client, bool chief, bool evaluates,
          TrainingResult& result, JobResult& job) {
  loop.join();
  result = loop.run([&](const Progress& progress) {
    if (chief) job.progress.push_back(progress);
  });
  client.barrier(ps::trainedBarrier(ps::kFirstEpoch));
  if (chief) {
    if (evaluates) job.evaluation = loop.evaluate();
    client.pull();
    const std::vector<ps::ShardLayout>& shards = loop.declaration().layout.shards;
    for (uint32_t ps = 0; ps < shards.size(); ++ps)
      job.parameters.emplace_back(client.parameters(ps),
                                  client.parameters(ps) + shards[ps].elements);
  }
  client.finish();
}

}  // namespace

JobResult runJob(const cluster::TrainSpec& train, const TasksOfJob& size,
                 std::shared_ptr<const data::Dataset> dataset,
                 std::shared_ptr<const data::Dataset> eval) {
  const runtime::KernelTable kernels = cpuKernels();
  const SystemClock clock;
  ps::LocalCluster cluster(size.ps_tasks, size.workers, clock, std::chrono::seconds(20));
  JobResult job;
  job.workers.resize(size.workers);
  std::vector<std::exception_ptr> errors(size.workers);
  {
    std::vector<Thread> threads;
    for (uint32_t rank = 0; rank < size.workers; ++rank) {
      threads.emplace_back("worker", [&, rank] {
        try {
          runtime::CpuDevice device;
          ps::LocalParameterClient client(cluster, rank);
          TrainingLoop loop(train, {rank, size.workers, size.ps_tasks}, dataset, client, kernels,
                            device, clock);
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
