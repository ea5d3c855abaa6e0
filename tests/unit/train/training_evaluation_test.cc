// When a training loop evaluates, and with which values.

#include <gtest/gtest.h>

#include <cmath>

#include "common/train/training_loop.h"
#include "tests/unit/train/job.h"
#include "tests/unit/train/wrapped_client.h"

namespace dtf::train {
namespace {

TEST(TrainingEvaluation, EvaluatesTheMovingAverages) {
  cluster::TrainSpec train = softmaxJob(100);
  train.eval_every_steps = 40;
  train.placement.partition_min_bytes = 1024;
  const JobResult plain = runJob(train, {2, 1}, trainDigits(), evalDigits());
  train.optimizer.moving_average_decay = 1 - 1e-7;  // they hardly leave the initial values
  const JobResult averaged = runJob(train, {2, 1}, trainDigits(), evalDigits());
  EXPECT_GT(averaged.evaluation->loss, 2.0) << "guessing is ln 10 = 2.3";
  EXPECT_LT(plain.evaluation->loss, 1.5);
  EXPECT_EQ(averaged.parameters, plain.parameters) << "training doesn't see them";
  EXPECT_EQ(averaged.workers[0].final_loss, plain.workers[0].final_loss);
}

TEST(TrainingEvaluation, ReportsAndEvaluatesWhenDue) {
  cluster::TrainSpec train = syncJob(25);
  train.report_every_steps = 10;
  train.eval_every_steps = 5;
  const JobResult job = runJob(train, {1, 2}, trainDigits(), evalDigits());
  std::vector<uint64_t> reported;
  std::vector<uint64_t> evaluated;
  for (const Progress& progress : job.progress) {
    reported.push_back(progress.global_step);
    if (progress.evaluation) evaluated.push_back(progress.global_step);
    EXPECT_TRUE(std::isfinite(progress.loss));
    EXPECT_GT(progress.examples_per_second, 0);  // the first one too
  }
  EXPECT_EQ(reported, (std::vector<uint64_t>{5, 10, 15, 20, 25}));
  EXPECT_EQ(evaluated, (std::vector<uint64_t>{5, 10, 15, 20}));  // the caller makes the last one
}

// Other workers wait without a deadline during an evaluation, so the ps must know of it.
class EvaluatingClient final : public WrappedClient, public exchange::JobClient {
 public:
  using WrappedClient::WrappedClient;
  exchange::JobClient& job() override { return *this; }
  void initialise(std::span<const std::span<const float>> shards, uint64_t epoch) override {
    client().initialise(shards, epoch);
  }
  void waitInitialised() override { client().waitInitialised(); }
  void barrier(std::string_view name) override { client().barrier(name); }
  void setEvaluating(bool evaluating) override { told.push_back(evaluating); }
  void leave() override { client().leave(); }
  std::vector<bool> told;
};

TEST(TrainingEvaluation, ThePsAreToldWhileItLasts) {
  const runtime::KernelTable kernels = cpuKernels();
  const SystemClock clock;
  runtime::CpuDevice device;
  exchange::LocalCluster cluster(1, 1, clock, std::chrono::seconds(20));
  EvaluatingClient client(cluster);
  cluster::TrainSpec train = softmaxJob(4);
  train.eval_every_steps = 2;
  TrainingLoop loop(train, {0, 1, 1}, trainDigits(), client, kernels, device, clock);
  loop.evaluateOn(evalDigits());
  loop.join();
  loop.run(nullptr);
  EXPECT_EQ(client.told, (std::vector<bool>{true, false})) << "at step 2; the last is the caller's";
}

}  // namespace
}  // namespace dtf::train
