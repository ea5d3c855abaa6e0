// Training with replication.overlap: one worker computes each gradient from parameters that are one
// update old.

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "common/train/step_observer.h"
#include "tests/unit/train/job.h"
#include "tests/unit/train/wrapped_client.h"

namespace dtf::train {
namespace {

// A client that waits for each exchange, and shows the parameters from before it.
class LateClient final : public WrappedClient {
 public:
  explicit LateClient(exchange::LocalCluster& cluster) : WrappedClient(cluster) {}
  void declare(const arena::ModelDeclaration& model,
               std::shared_ptr<optimizer::DeviceArrays> device = nullptr) override {
    arena::ModelDeclaration declared = model;
    declared.replication.overlap = false;
    WrappedClient::declare(declared, std::move(device));
    for (const arena::ShardLayout& shard : model.layout.shards) elements_.push_back(shard.elements);
    newest_.resize(elements_.size());
  }
  replication::StepState pull(exchange::Values what = exchange::Values::kParameters) override {
    const replication::StepState state = WrappedClient::pull(what);
    copyNewest();
    shown_ = newest_;
    return state;
  }
  const float* view(exchange::Values what, uint32_t ps_task) const override {
    return what == exchange::Values::kAverages ? WrappedClient::view(what, ps_task)
                                               : shown_[ps_task].data();
  }
  replication::StepState finish(const Error* failure = nullptr) override {
    const replication::StepState state = WrappedClient::finish(failure);
    shown_ = newest_;
    copyNewest();
    return state;
  }

 private:
  void copyNewest() {
    for (uint32_t ps = 0; ps < elements_.size(); ++ps) {
      const float* const from = client().view(exchange::Values::kParameters, ps);
      newest_[ps].assign(from, from + elements_[ps]);
    }
  }

  std::vector<size_t> elements_;
  std::vector<std::vector<float>> shown_, newest_;
};

// Records each gradient just before it is pushed.
class Gradients final : public StepObserver {
 public:
  void onParameters(const replication::StepState&, ParameterBinding&, bool) override {}
  void onGradients(ParameterBinding& binding, const ComputedBatch& batch) override {
    for (uint32_t i = 0; i < binding.variables(); ++i) {
      const std::span<const float> gradient = binding.gradientValues(i);
      sums.push_back(std::accumulate(gradient.begin(), gradient.end(), 0.0));
    }
    first_features.push_back(batch.examples.parts[0].as<uint8_t>()[350]);
  }
  void onEvaluation(uint64_t, const Evaluation&) override {}
  std::vector<double> sums;
  std::vector<uint8_t> first_features;
};

struct OverlapRun {
  std::vector<std::vector<float>> parameters;
  Gradients gradients;
  std::vector<double> losses;
};

template <class Client>
OverlapRun trainWith(cluster::TrainSpec train, bool overlap) {
  train.replication.overlap = overlap;
  train.report_every_steps = 1;
  const runtime::KernelTable kernels = cpuKernels();
  const SystemClock clock;
  runtime::CpuDevice device;
  exchange::LocalCluster cluster(2, 1, clock, std::chrono::seconds(20));
  std::unique_ptr<exchange::ExchangeClient> client;
  if constexpr (std::is_same_v<Client, LateClient>) {
    client = std::make_unique<LateClient>(cluster);
  } else {
    client = std::make_unique<Client>(cluster, 0);
  }
  TrainingLoop loop(train, {0, 1, 2}, digits(data::DigitStream::kTrain, 500), *client, kernels,
                    device, clock);
  OverlapRun trained;
  loop.observe(&trained.gradients);
  loop.join();
  const TrainingResult result =
      loop.run([&](const Progress& progress) { trained.losses.push_back(progress.loss); });
  EXPECT_EQ(result.global_step, train.steps);
  EXPECT_EQ(result.batches, train.steps);
  client->pull();
  const std::vector<arena::ShardLayout>& shards = loop.declaration().layout.shards;
  for (uint32_t ps = 0; ps < shards.size(); ++ps)
    trained.parameters.emplace_back(
        client->view(exchange::Values::kParameters, ps),
        client->view(exchange::Values::kParameters, ps) + shards[ps].elements);
  return trained;
}

void expectPipelined(const cluster::TrainSpec& train) {
  const OverlapRun expected = trainWith<LateClient>(train, false);
  const OverlapRun overlapped = trainWith<exchange::LocalExchangeClient>(train, true);
  EXPECT_EQ(overlapped.parameters, expected.parameters);
  EXPECT_EQ(overlapped.losses, expected.losses);
  EXPECT_EQ(overlapped.gradients.sums, expected.gradients.sums);
  EXPECT_EQ(overlapped.gradients.first_features, expected.gradients.first_features);
  EXPECT_NE(overlapped.parameters,
            trainWith<exchange::LocalExchangeClient>(train, false).parameters)
      << "the two must differ, or nothing was shown";
}

TEST(Overlap, OfOneWorkerEachGradientLacksTheOneBefore) {
  expectPipelined(softmaxJob(30));
}

TEST(Overlap, WithVariablesThatAreSplitClippedAndAveraged) {
  cluster::TrainSpec train = softmaxJob(30);
  train.placement.partition_min_bytes = 64;
  train.optimizer.clip_by_global_norm = 0.1;
  train.optimizer.kind = cluster::OptimizerSpec::Kind::kAdam;
  train.optimizer.learning_rate = 0.01;
  train.optimizer.moving_average_decay = 0.9;
  expectPipelined(train);
}

TEST(Overlap, OneStepOfAJobIsAsWithout) {
  const cluster::TrainSpec train = softmaxJob(1);
  EXPECT_EQ(trainWith<exchange::LocalExchangeClient>(train, true).parameters,
            trainWith<exchange::LocalExchangeClient>(train, false).parameters);
}

TEST(Overlap, SeveralWorkersLearn) {
  cluster::TrainSpec train = softmaxJob(1000);
  train.replication.overlap = true;
  train.optimizer.learning_rate =
      0.1;  // some five updates come between a gradient's parameters and the gradient
  const JobResult job = runJob(train, {2, 3}, digits(data::DigitStream::kTrain, 2000),
                               digits(data::DigitStream::kEval, 500));
  EXPECT_LT(job.evaluation.value().loss, 1.8) << "guessing is ln 10 = 2.3";
}

TEST(Overlap, ALossThatIsNoNumberEndsTheJobInItsWords) {
  cluster::TrainSpec train = softmaxJob(30);
  train.replication.overlap = true;
  train.optimizer.learning_rate = 1e38;
  try {
    runJob(train, {1, 1}, digits(data::DigitStream::kTrain, 500));
    FAIL() << "trained";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kTrainingFailed);
    EXPECT_NE(error.message().find("on worker/0 at step "), std::string::npos) << error.message();
  }
}

}  // namespace
}  // namespace dtf::train
