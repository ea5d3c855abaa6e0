#include "common/shard/declaration.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "common/base/error.h"

namespace dtf::shard {
namespace {

using Kind = cluster::OptimizerSpec::Kind;
using Mode = cluster::ReplicationSpec::Mode;

arena::ModelDeclaration goodModel() {
  arena::ModelDeclaration model;
  model.layout =
      arena::makeLayout({{"a", Shape{20}, {{0, 0, 20}}}, {"b", Shape{3}, {{1, 0, 3}}}}, 2);
  model.replication = {Mode::kSync, 2, 3};
  model.steps = 10;
  return model;
}

// Returns the error for a good model with one change; "" when it passes.
std::string refusal(const std::function<void(arena::ModelDeclaration&)>& change) {
  arena::ModelDeclaration model = goodModel();
  change(model);
  try {
    validateDeclaration(model, 2, 3);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBadConfig);
    return error.message();
  }
  return "";
}

TEST(Declaration, ASaneModelPasses) {
  EXPECT_EQ(refusal([](arena::ModelDeclaration&) {}), "");
}

TEST(Declaration, RefusesLayoutsThatCannotBe) {
  EXPECT_NE(refusal([](auto& m) { m.layout.shards.pop_back(); }), "");
  EXPECT_NE(refusal([](auto& m) { m.layout.shards[0].slices[0].variable = 2; }), "");
  EXPECT_NE(refusal([](auto& m) { m.layout.shards[0].slices[0].count = 21; }), "");
  EXPECT_NE(refusal([](auto& m) { m.layout.shards[0].slices[0].begin = ~uint64_t{0}; }), "");
  EXPECT_NE(refusal([](auto& m) { m.layout.shards[0].slices[0].offset = 8; }), "");
  EXPECT_NE(refusal([](auto& m) { m.layout.shards[0].slices[0].offset = ~uint64_t{15}; }), "");
  EXPECT_NE(refusal([](auto& m) { m.layout.shards[0].elements = ~uint64_t{15}; }), "");
  EXPECT_NE(refusal([](auto& m) { m.layout.shards[0].elements = 33; }), "");
  EXPECT_NE(
      refusal([](auto& m) { m.layout.shards[0].slices.push_back(m.layout.shards[0].slices[0]); }),
      "")
      << "overlapping slices";
}

// Makes "a" a table of 5 x 4, split over the two ps, behind "b".
void makeSparse(arena::ModelDeclaration& model) {
  model.layout =
      arena::makeLayout({{"a", Shape{5, 4}, {{0, 0, 12}, {1, 12, 8}}, std::nullopt, true},
                         {"b", Shape{3}, {{1, 0, 3}}}},
                        2);
}

TEST(Declaration, SparseVariablesAreWholeRowsBehindAllElse) {
  const auto refused = [](const std::function<void(arena::ModelDeclaration&)>& change) {
    return refusal([&](arena::ModelDeclaration& m) {
      makeSparse(m);
      change(m);
    });
  };
  EXPECT_EQ(refused([](auto&) {}), "");
  EXPECT_NE(refused([](auto& m) {
              m.layout.shards[0].slices[0].begin = 2;
            }).find("elements [2, +12) of the sparse 'a' are not whole rows of 4"),
            std::string::npos);
  EXPECT_NE(refused([](auto& m) {
              m.layout.shards[1].slices[1].count = 7;
            }).find("are not whole rows of 4"),
            std::string::npos);
  EXPECT_NE(refused([](auto& m) {
              m.layout.variables[1].is_sparse = true;
              m.layout.variables[0].is_sparse = false;
            }).find("'a' lies behind a sparse variable, but is dense"),
            std::string::npos);
  for (const Shape& shape : {Shape{}, Shape{0, 4}, Shape{0, 1 << 30, 1 << 30}})
    EXPECT_NE(refused([&](auto& m) {
                m.layout.variables[0].shape = shape;
              }).find("cannot be sparse: it is not a trained table of rows"),
              std::string::npos);
  EXPECT_NE(refused([](auto& m) { m.layout.variables[0].momentum = 0.5; }).find("cannot be sparse"),
            std::string::npos);
}

// A row takes its values and its id: short rows take more bytes than the parameters themselves.
TEST(Declaration, AGradientIsNoLargerThanAMessageCarries) {
  const auto refusalOf = [](uint32_t rows, int64_t row_elements) -> std::string {
    const auto elements = rows * static_cast<uint64_t>(row_elements);
    try {
      validateLayout(arena::makeLayout(
          {{"table", Shape{rows, row_elements}, {{0, 0, elements}}, std::nullopt, true}}, 1));
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kBadConfig);
      return error.message();
    }
    return "";
  };
  static_assert(kShardElementsMax / 8 * 8 == kShardElementsMax);
  EXPECT_EQ(refusalOf(kShardElementsMax / 8, 7), "");
  EXPECT_NE(refusalOf(kShardElementsMax / 8 + 2, 7)
                .find("a gradient of shard 0 that names all rows of its tables has 32212254736"),
            std::string::npos)
      << refusalOf(kShardElementsMax / 8 + 2, 7);
}

TEST(Declaration, SparseVariablesNeedAnOptimizerThatUpdatesRows) {
  EXPECT_NE(refusal([](auto& m) {
              makeSparse(m);
              m.optimizer = cluster::defaultOptimizer(Kind::kMomentum);
              m.optimizer.weight_decay = 0.1;
            }).find("'a' is sparse, but momentum with these settings updates whole variables"),
            std::string::npos);
}

TEST(Declaration, AVariableThatIsSparseForOneWorkerAloneIsNamed) {
  arena::ModelDeclaration sparse = goodModel();
  makeSparse(sparse);
  arena::ModelDeclaration dense = sparse;
  dense.layout.variables[0].is_sparse = false;
  EXPECT_EQ(declarationDifference(dense, sparse),
            "a is trained, with a gradient of single rows, the job's is trained");
}

// A message of a few hundred bytes must not allocate more memory than its variables take.
TEST(Declaration, RefusesElementsThatNoVariableHas) {
  EXPECT_NE(refusal([](auto& m) {
              m.layout.shards[0].elements = 1 << 20;
            }).find("a shard of 1048576 elements, of which only 20 belong to variables"),
            std::string::npos);
  EXPECT_NE(refusal([](auto& m) {
              m.layout.shards[1].slices[0].offset = 1 << 20;
              m.layout.shards[1].elements = (1 << 20) + 16;
            }),
            "")
      << "a gap before the first";
  EXPECT_NE(refusal([](auto& m) {
              m.layout.shards[1].slices.clear();  // the shard still has 16 elements
            }),
            "");
}

TEST(Declaration, RefusesAMovingAverageThatNeverMovesOrOvershoots) {
  EXPECT_EQ(refusal([](auto& m) { m.layout.variables[1].momentum = 0; }), "");
  for (const double momentum : {1.0, -0.5, std::nan("")})
    EXPECT_NE(refusal([&](auto& m) {
                m.layout.variables[1].momentum = momentum;
              }).find("the moving average 'b' has momentum"),
              std::string::npos)
        << momentum;
}

TEST(Declaration, NamesAVariableThatOnlyOneOfThemTrains) {
  arena::ModelDeclaration moving = goodModel();
  moving.layout.variables[1].momentum = 0.99;
  EXPECT_EQ(declarationDifference(goodModel(), moving),
            "b is a moving average with momentum 0.99, the job's is trained");
  arena::ModelDeclaration slower = moving;
  slower.layout.variables[1].momentum = 0.999;
  EXPECT_EQ(
      declarationDifference(moving, slower),
      "b is a moving average with momentum 0.999, the job's is a moving average with momentum "
      "0.99");
}

TEST(Declaration, RefusesOptimizersThatCannotWork) {
  EXPECT_NE(refusal([](auto& m) { m.optimizer.kind = static_cast<Kind>(11); }), "");
}

TEST(Declaration, LarsAndLambRefuseSplitVariables) {
  for (const Kind kind : {Kind::kLars, Kind::kLamb}) {
    EXPECT_EQ(refusal([&](auto& m) { m.optimizer = cluster::defaultOptimizer(kind); }), "");
    EXPECT_NE(refusal([&](auto& m) {
                m.optimizer = cluster::defaultOptimizer(kind);
                m.layout.shards[0].slices[0].count -= 1;
              }).find("is split over several ps"),
              std::string::npos);
  }
}

TEST(Declaration, RefusesReplicationThatDoesNotFitTheCluster) {
  EXPECT_NE(refusal([](auto& m) { m.replication.total_num_replicas = 2; }), "");
  EXPECT_NE(refusal([](auto& m) { m.replication.replicas_to_aggregate = 0; }), "");
  EXPECT_NE(refusal([](auto& m) { m.replication.replicas_to_aggregate = 1 << 30; }), "");
  EXPECT_NE(refusal([](auto& m) { m.replication.mode = static_cast<Mode>(0); }), "");
  EXPECT_NE(refusal([](auto& m) { m.steps = 0; }), "");
  EXPECT_EQ(refusal([](auto& m) { m.epochs = {.examples = 5, .batch_size = 100}; }), "");
  EXPECT_NE(refusal([](auto& m) { m.epochs = {.examples = 5, .batch_size = 0}; }), "");
  EXPECT_NE(refusal([](auto& m) { m.epochs = {.examples = 0, .batch_size = 5}; }), "");
  EXPECT_NE(refusal([](auto& m) { m.epochs = {.examples = uint64_t{1} << 32, .batch_size = 5}; }),
            "");
}

TEST(Declaration, ManyDifferencesAreCounted) {
  arena::ModelDeclaration other = goodModel();
  for (int i = 0; i < 100; ++i) other.settings.push_back({"s" + std::to_string(100 + i), "1"});
  const std::string text = declarationDifference(goodModel(), other);
  EXPECT_NE(text.find("s107 is 1, the job's is not set; and 92 more"), std::string::npos) << text;
  EXPECT_EQ(text.find("s108"), std::string::npos) << text;
}

TEST(Declaration, DifferencesNameTheFieldAndBothValues) {
  EXPECT_EQ(declarationDifference(goodModel(), goodModel()), "");
  arena::ModelDeclaration other = goodModel();
  other.optimizer.kind = Kind::kAdam;
  other.replication.replicas_to_aggregate = 3;
  EXPECT_EQ(declarationDifference(goodModel(), other),
            "replication.replicas_to_aggregate is 3, the job's is 2; optimizer is adam, the job's "
            "is gradient_descent");
  other = goodModel();
  other.optimizer.kind = Kind::kMomentum;
  arena::ModelDeclaration momentum = other;
  other.optimizer.schedule.warmup_steps = 7;
  other.optimizer.use_nesterov = true;
  EXPECT_EQ(declarationDifference(momentum, other),
            "optimizer.use_nesterov is true, the job's is false; optimizer.warmup_steps is 7, the "
            "job's is 0");
  other = goodModel();
  other.layout.variables[1].shape = Shape{4};
  EXPECT_EQ(declarationDifference(goodModel(), other), "variable 1 is b [4], the job's is b [3]");
  other = goodModel();
  other.layout.shards[0].slices[0].offset = 16;
  EXPECT_NE(declarationDifference(goodModel(), other).find("placement"), std::string::npos);
}

// Each mode has settings of its own; the other mode's are not compared.
TEST(Declaration, ModesThatDifferAreOneDifference) {
  arena::ModelDeclaration bounded = goodModel();
  bounded.replication = {.mode = cluster::ReplicationSpec::Mode::kBounded, .staleness = 3};
  EXPECT_EQ(declarationDifference(goodModel(), bounded),
            "replication.mode is bounded, the job's is sync");
  arena::ModelDeclaration wider = bounded;
  wider.replication.staleness = 4;
  EXPECT_EQ(declarationDifference(bounded, wider), "replication.staleness is 4, the job's is 3");
  arena::ModelDeclaration async = goodModel();
  async.replication = {.mode = cluster::ReplicationSpec::Mode::kAsync, .total_num_replicas = 7};
  for (const arena::Setting& setting : settingsOf(async))
    EXPECT_EQ(setting.name.find("num_replicas"), std::string::npos) << "it has no meaning there";
}

// Workers of 0.1.0 and of today have read one file.
TEST(Declaration, SettingsAreTheSameInNamesOfEitherVersion) {
  arena::ModelDeclaration today = goodModel();
  today.settings = {{"data.seed", "1"},
                    {"model.loss", "sparse_categorical_crossentropy"},
                    {"model.layers[0]", "max_pooling2d pool_size=2x2 strides=2x2 padding=valid"}};
  arena::ModelDeclaration former = today;
  former.settings[1].value = "softmax_cross_entropy";
  former.settings[2].value = "max_pool size=2x2 stride=2x2 padding=valid";
  EXPECT_NE(today, former);
  EXPECT_TRUE(declareTheSame(today, former));
  EXPECT_TRUE(declareTheSame(former, today));
  EXPECT_EQ(declarationDifference(today, former), "");
  former.settings[2].value = "max_pool size=3x3 stride=2x2 padding=valid";
  EXPECT_FALSE(declareTheSame(today, former));
  EXPECT_EQ(declarationDifference(today, former),
            "model.layers[0] is max_pool size=3x3 stride=2x2 padding=valid, the job's is "
            "max_pooling2d pool_size=2x2 strides=2x2 padding=valid");
}

TEST(Declaration, SettingsThatOnlyOneHasAreADifference) {
  arena::ModelDeclaration job = goodModel();
  job.settings = {{"data.seed", "1"}, {"model.loss", "mse"}};
  arena::ModelDeclaration other = goodModel();
  other.settings = {{"data.seed", "2"}, {"model.layers[0]", "flatten"}};
  EXPECT_EQ(declarationDifference(job, other, "worker/1's"),
            "data.seed is 2, worker/1's is 1; model.loss is not set, worker/1's is mse; "
            "model.layers[0] is flatten, worker/1's is not set");
}

}  // namespace
}  // namespace dtf::shard
