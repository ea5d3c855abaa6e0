// Workers that receive only the rows that a batch looks up train to the bits of workers that
// receive all.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "common/base/random.h"
#include "tests/unit/data/part_of.h"
#include "tests/unit/train/job.h"
#include "tests/unit/train/row_client.h"

namespace dtf::train {
namespace {

constexpr uint8_t kVocabulary = 50, kSentence = 4;

std::shared_ptr<const data::Dataset> drawnSentences(int64_t count) {
  Random random(7, 0);
  std::vector<uint8_t> words, classes;
  for (int64_t i = 0; i < count; ++i) {
    for (int j = 0; j < kSentence; ++j)
      words.push_back(static_cast<uint8_t>(random.uniform(0, kVocabulary)));
    classes.push_back(words.back() % 2);
  }
  return std::make_shared<const data::Dataset>(
      data::partOf(data::kFeatures, Shape{int64_t{kSentence}}, words),
      data::partOf(data::kLabels, Shape{}, classes));
}

// Batches of 3 sentences look up at most 12 of 50 rows.
cluster::TrainSpec sentencesJob() {
  cluster::TrainSpec train = softmaxJob(60);
  train.data.batch_size = 3;
  train.model.input_shape = {kSentence};
  train.model.layers = {model::layerOf("embedding", "{input_dim: 50, output_dim: 4}", "words"),
                        model::flatten(), model::dense("out", 2)};
  train.optimizer = cluster::defaultOptimizer(cluster::OptimizerSpec::Kind::kAdagrad);
  train.optimizer.learning_rate = 0.1;
  train.placement.partition_min_bytes = 0;
  return train;
}

// Sums all parameters after each update: a missing row shows as NaN.
class WholeSums final : public StepObserver {
 public:
  void onParameters(const replication::StepState&, ParameterBinding& binding, bool) override {
    binding.bringWhole();
    double sum = 0;
    for (int i = 0; i < 50 * 4; ++i) sum += double{binding.value(0)[i]};
    binding.gatherAgain();
    sums.push_back(sum);
  }
  void onGradients(ParameterBinding&, const ComputedBatch&) override {}
  void onEvaluation(uint64_t, const Evaluation& evaluation) override {
    losses.push_back(evaluation.loss);
  }
  std::vector<double> sums, losses;
};

struct TrainedOnRows {
  std::vector<std::vector<float>> parameters;
  WholeSums observed;
  std::vector<double> losses;
  uint64_t pulls = 0, wholes = 0;
};

template <class Client>
TrainedOnRows trainOnRows(cluster::TrainSpec train) {
  train.report_every_steps = 1;
  train.eval_every_steps = 20;
  const runtime::KernelTable kernels = cpuKernels();
  const SystemClock clock;
  runtime::CpuDevice device;
  exchange::LocalCluster cluster(2, 1, clock, std::chrono::seconds(20));
  Client client(cluster);
  TrainingLoop loop(train, {0, 1, 2}, drawnSentences(200), client, kernels, device, clock);
  TrainedOnRows trained;
  loop.evaluateOn(drawnSentences(90));
  loop.observe(&trained.observed);
  loop.join();
  loop.run([&](const Progress& progress) { trained.losses.push_back(progress.loss); });
  if constexpr (std::is_same_v<Client, RowClient>) {
    trained.pulls = client.pulls;
    trained.wholes = client.wholes;
  }
  loop.evaluate();
  client.pull();
  const std::vector<arena::ShardLayout>& shards = loop.declaration().layout.shards;
  for (uint32_t ps = 0; ps < shards.size(); ++ps)
    trained.parameters.emplace_back(
        client.view(exchange::Values::kParameters, ps),
        client.view(exchange::Values::kParameters, ps) + shards[ps].elements);
  return trained;
}

void expectTheSame(const cluster::TrainSpec& train) {
  const TrainedOnRows all = trainOnRows<WrappedClient>(train);
  const TrainedOnRows rows = trainOnRows<RowClient>(train);
  EXPECT_EQ(rows.losses, all.losses);
  EXPECT_EQ(rows.observed.sums, all.observed.sums);
  EXPECT_EQ(rows.observed.losses, all.observed.losses);
  EXPECT_EQ(rows.observed.losses.size(), 3u) << "at steps 20 and 40, and at the end";
  EXPECT_EQ(rows.parameters, all.parameters);
  EXPECT_TRUE(std::isfinite(all.losses.back()));
  EXPECT_EQ(rows.pulls, 2u)
      << "which batch is the first, and its rows: all later ones come with an exchange";
  EXPECT_GE(rows.wholes, 60u);
}

TEST(WantedRows, OfATableOnOnePsAreAllThatABatchNeeds) {
  expectTheSame(sentencesJob());
}

TEST(WantedRows, OfATableThatIsSplitOverTwoPs) {
  cluster::TrainSpec train = sentencesJob();
  train.placement.partition_min_bytes = 64;
  expectTheSame(train);
}

TEST(WantedRows, EvaluationsOfMovingAveragesSeeAllRows) {
  cluster::TrainSpec train = sentencesJob();
  train.optimizer.moving_average_decay = 0.5;
  expectTheSame(train);
}

}  // namespace
}  // namespace dtf::train
