// Embeddings from the data to the ps.

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "common/base/random.h"
#include "common/cluster/data_spec.h"
#include "common/data/clicks.h"
#include "common/train/initial_values.h"
#include "tests/unit/data/part_of.h"
#include "tests/unit/train/job.h"

namespace dtf::train {
namespace {

constexpr uint8_t kWords = 40, kLength = 6;

// Sentences of words; the class is whether most of them are even.
std::shared_ptr<const data::Dataset> sentences(int64_t count, uint64_t seed) {
  Random random(seed, 0);
  std::vector<uint8_t> words, classes;
  for (int64_t i = 0; i < count; ++i) {
    int even = 0;
    for (int j = 0; j < kLength; ++j) {
      words.push_back(static_cast<uint8_t>(random.uniform(0, kWords)));
      even += words.back() % 2 == 0 ? 1 : -1;
    }
    classes.push_back(even > 0 ? 1 : 0);
  }
  return std::make_shared<const data::Dataset>(
      data::partOf(data::kFeatures, Shape{int64_t{kLength}}, words),
      data::partOf(data::kLabels, Shape{}, classes));
}

cluster::TrainSpec embeddingJob(int64_t vocabulary) {
  cluster::TrainSpec train = softmaxJob(300);
  train.optimizer = cluster::defaultOptimizer(cluster::OptimizerSpec::Kind::kAdam);
  train.optimizer.learning_rate = 0.02;
  train.model.input_shape = {kLength};
  train.model.layers = {
      model::layerOf("embedding", "{input_dim: " + std::to_string(vocabulary) + ", output_dim: 4}",
                     "words"),
      model::flatten(), model::dense("out", 2)};
  return train;
}

TEST(Embedding, LearnsWhatItsWordsMean) {
  const JobResult job = runJob(embeddingJob(kWords), {2, 2}, sentences(2000, 1), sentences(500, 2));
  EXPECT_GT(*job.evaluation->accuracy, 0.95);
}

// Adds a weight decay that is 0 in float32: it needs a rule for all rows, and so a dense gradient.
cluster::TrainSpec asDense(cluster::TrainSpec train) {
  train.optimizer.weight_decay = 1e-300;
  return train;
}

TEST(Embedding, ATablesGradientIsSparseUnlessTheOptimizerWantsAllOfIt) {
  cluster::TrainSpec train = embeddingJob(kWords);
  const auto is_sparse = [&] {
    const model::ModelGraph model = trainingGraphOf(train);
    const arena::ParameterLayout layout = layoutOf(model, placeModel(model.graph, {}, 1, 0));
    EXPECT_EQ(layout.variables[0].name, "words/embeddings");
    EXPECT_FALSE(layout.variables[1].is_sparse);
    return layout.variables[0].is_sparse;
  };
  EXPECT_TRUE(is_sparse());
  train.optimizer = cluster::defaultOptimizer(cluster::OptimizerSpec::Kind::kMomentum);
  EXPECT_TRUE(is_sparse());
  EXPECT_FALSE((train = asDense(train), is_sparse()));
  train.optimizer = cluster::defaultOptimizer(cluster::OptimizerSpec::Kind::kLamb);
  EXPECT_FALSE(is_sparse());
}

TEST(Embedding, SparseTrainingHasTheBitsOfDenseTraining) {
  cluster::TrainSpec train = embeddingJob(kWords);
  train.steps = 50;
  train.placement.partition_min_bytes = 64;
  for (const auto kind :
       {cluster::OptimizerSpec::Kind::kGradientDescent, cluster::OptimizerSpec::Kind::kAdam}) {
    train.optimizer = cluster::defaultOptimizer(kind);
    train.optimizer.learning_rate = 0.05;
    const JobResult sparse = runJob(train, {1, 1}, sentences(2000, 1), sentences(500, 2));
    const JobResult dense = runJob(asDense(train), {1, 1}, sentences(2000, 1), sentences(500, 2));
    EXPECT_EQ(sparse.workers[0].final_loss, dense.workers[0].final_loss);
    EXPECT_EQ(sparse.evaluation->loss, dense.evaluation->loss);
    const JobResult split = runJob(train, {3, 1}, sentences(2000, 1), sentences(500, 2));
    EXPECT_EQ(sparse.evaluation->loss, split.evaluation->loss);
  }
}

// The norm of the gradient itself: a row that was read twice counts once.
TEST(Embedding, TheGlobalNormIsThatOfTheDenseGradient) {
  cluster::TrainSpec train = embeddingJob(kWords);
  train.optimizer = cluster::defaultOptimizer(cluster::OptimizerSpec::Kind::kGradientDescent);
  train.optimizer.learning_rate = 1;
  train.optimizer.clip_by_global_norm = 0.01;
  train.steps = 20;
  const JobResult sparse = runJob(train, {2, 1}, sentences(2000, 1), sentences(500, 2));
  const JobResult dense = runJob(asDense(train), {2, 1}, sentences(2000, 1), sentences(500, 2));
  EXPECT_NEAR(*sparse.workers[0].final_loss, *dense.workers[0].final_loss, 1e-5);
}

// Two inputs with a table each, users and items, beside the numbers.
cluster::TrainSpec clicksJob(const std::string& combiner = "sum") {
  cluster::TrainSpec train = softmaxJob(60);
  train.optimizer = cluster::defaultOptimizer(cluster::OptimizerSpec::Kind::kAdam);
  train.optimizer.learning_rate = 0.02;
  train.data.batch_size = 48;
  train.model.input_shape = {data::kClickFeatures};
  train.model.input_dtype = DType::kFloat32;
  train.model.labels_dtype = DType::kInt32;
  train.model.categories = {{"item", 1, cluster::kClickItems}, {"user", 1, cluster::kClickUsers}};
  train.model.loss.kind = model::Loss::kSigmoidCrossEntropy;
  const auto table = [&combiner](const std::string& of, int64_t rows) {
    return model::layerOf("embedding",
                          "{categories: " + of + ", input_dim: " + std::to_string(rows) +
                              ", output_dim: 4, combiner: " + combiner + "}",
                          of);
  };
  train.model.layers = {model::dense("numbers", 4),
                        table("user", 1000),
                        table("item", 500),
                        model::layerOf("multiply", "{with: [user]}", "match"),
                        model::layerOf("concatenate", "{with: [numbers, user, item]}", "all"),
                        model::dense("click", 1)};
  return train;
}

std::shared_ptr<const data::Dataset> clicks(bool eval, int64_t count) {
  return std::make_shared<const data::Dataset>(data::drawClicks(1, eval, count));
}

TEST(Embedding, TablesOfSeveralInputsHaveTheBitsOfDenseTraining) {
  cluster::TrainSpec train = clicksJob();
  train.placement.partition_min_bytes = 4096;  // splits the users' table over all ps
  const JobResult sparse = runJob(train, {1, 1}, clicks(false, 3000), clicks(true, 500));
  const JobResult dense = runJob(asDense(train), {1, 1}, clicks(false, 3000), clicks(true, 500));
  EXPECT_EQ(sparse.workers[0].final_loss, dense.workers[0].final_loss);
  EXPECT_EQ(sparse.evaluation->loss, dense.evaluation->loss);
  const JobResult split = runJob(train, {3, 1}, clicks(false, 3000), clicks(true, 500));
  EXPECT_EQ(sparse.evaluation->loss, split.evaluation->loss);
}

TEST(Embedding, TowersShareOutAllInputsOfABatch) {
  const cluster::TrainSpec train = clicksJob("mean");
  const JobResult one = runJob(train, {2, 1}, clicks(false, 3000), clicks(true, 500));
  for (const uint32_t towers : {2U, 3U}) {
    const JobResult several =
        runJob(train, {2, 1, towers, 2}, clicks(false, 3000), clicks(true, 500));
    EXPECT_NEAR(several.evaluation->loss, one.evaluation->loss, 1e-4) << towers;
  }
}

// The message of a setting is limited; a recommender may have many inputs, all joined by one layer.
TEST(Embedding, ManyInputsAreDeclaredToThePs) {
  constexpr int kInputs = 200;
  cluster::TrainSpec train = clicksJob();
  train.steps = 3;
  std::vector<data::Part> parts;
  std::string names = "numbers";
  train.model.categories.clear();
  train.model.layers = {model::dense("numbers", 4)};
  const std::vector<int32_t> values(100, 3);
  for (int i = 0; i < kInputs; ++i) {
    const std::string name = "input_with_a_name_of_some_length_" + std::to_string(1000 + i);
    train.model.categories.push_back({name, 1, 5, "hash_bucket_size=5"});
    parts.push_back(data::partOf<int32_t>(name, Shape{1}, values));
    train.model.layers.push_back(model::layerOf(
        "embedding", "{categories: " + name + ", input_dim: 5, output_dim: 2, combiner: sum}",
        name));
    if (i + 1 < kInputs) names += ", " + name;  // the last one is its input anyway
  }
  train.model.layers.push_back(model::layerOf("concatenate", "{with: [" + names + "]}", "all"));
  train.model.layers.push_back(model::dense("click", 1));
  const auto dataset = std::make_shared<const data::Dataset>(
      data::partOf<float>(data::kFeatures, Shape{data::kClickFeatures},
                          std::vector<float>(100 * data::kClickFeatures, 0.5F)),
      data::partOf<int32_t>(data::kLabels, Shape(), std::vector<int32_t>(100, 1)),
      std::move(parts));
  EXPECT_EQ(runJob(train, {2, 1}, dataset).workers[0].global_step, 3u);
}

TEST(Embedding, DataWithoutTheCategoriesOfTheModelAreRefused) {
  try {
    cluster::TrainSpec train = clicksJob();
    std::swap(train.model.categories[0], train.model.categories[1]);
    runJob(train, {1, 1}, clicks(false, 100));
    FAIL() << "trained";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBadConfig);
    EXPECT_NE(
        error.message().find(
            "the model reads categories beside the features, and the drawn examples has no 'user'"),
        std::string::npos)
        << error.message();
  }
}

TEST(Embedding, AWordBeyondItsVocabularyIsNamed) {
  try {
    runJob(embeddingJob(kWords - 20), {1, 1}, sentences(2000, 1));
    FAIL() << "trained";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBadData);
    EXPECT_NE(error.message().find("layer 'words' has a vocabulary of 20 (0 to 19)"),
              std::string::npos)
        << error.message();
  }
}

}  // namespace
}  // namespace dtf::train
