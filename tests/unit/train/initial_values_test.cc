#include "common/train/initial_values.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "common/base/error.h"
#include "tests/unit/model/models.h"

namespace dtf::train {
namespace {

struct Moments {
  double mean = 0;
  double deviation = 0;
  float largest = 0;
};

Moments momentsOf(const Tensor& tensor) {
  Moments moments;
  const auto values = tensor.as<float>();
  for (const float value : values) {
    moments.mean += value / static_cast<double>(values.size());
    moments.largest = std::max(moments.largest, std::fabs(value));
  }
  for (const float value : values) moments.deviation += std::pow(value - moments.mean, 2);
  moments.deviation = std::sqrt(moments.deviation / static_cast<double>(values.size()));
  return moments;
}

TEST(InitialValue, GlorotUniformHasItsLimits) {
  const Moments moments = momentsOf(initialValue("glorot_uniform", Shape{300, 100}, 1, 0));
  const double limit = std::sqrt(6.0 / 400);
  EXPECT_LE(moments.largest, limit);
  EXPECT_GT(moments.largest, 0.99 * limit);
  EXPECT_NEAR(moments.mean, 0, 0.02 * limit);
  EXPECT_NEAR(moments.deviation, limit / std::sqrt(3.0), 0.01 * limit);
}

TEST(InitialValue, RandomUniformHasKerassLimits) {
  const Moments moments = momentsOf(initialValue("random_uniform", Shape{300, 100}, 1, 0));
  EXPECT_LE(moments.largest, 0.05F);
  EXPECT_GT(moments.largest, 0.99 * 0.05);
  EXPECT_NEAR(moments.deviation, 0.05 / std::sqrt(3.0), 0.0005);
}

TEST(InitialValue, TruncatedNormalStaysWithinTwoDeviations) {
  const Moments moments = momentsOf(initialValue("truncated_normal", Shape{400, 100}, 1, 0));
  EXPECT_LE(moments.largest, 2.0 / 20);
  // A normal distribution cut at two deviations keeps 0.8796 of its deviation.
  EXPECT_NEAR(moments.deviation, 0.8796 / 20, 0.001);
}

// Each name gives its variance, with 300 inputs and 100 outputs.
TEST(InitialValue, VarianceScalingHasTheVarianceOfItsName) {
  const std::pair<const char*, double> kVariances[] = {
      {"glorot_uniform", 2.0 / 400}, {"glorot_normal", 2.0 / 400}, {"he_uniform", 2.0 / 300},
      {"he_normal", 2.0 / 300},      {"lecun_uniform", 1.0 / 300}, {"lecun_normal", 1.0 / 300}};
  for (const auto& [name, variance] : kVariances) {
    const Moments moments = momentsOf(initialValue(name, Shape{300, 100}, 1, 0));
    EXPECT_NEAR(moments.deviation, std::sqrt(variance), 0.02 * std::sqrt(variance)) << name;
    EXPECT_NEAR(moments.mean, 0, 0.03 * std::sqrt(variance)) << name;
  }
}

TEST(InitialValue, TheInputsOfAFilterAreThoseOfItsWholeWindow) {
  const double variance = 2.0 / (5 * 5 * 8);
  const Moments moments = momentsOf(initialValue("he_uniform", Shape{5, 5, 8, 64}, 1, 0));
  EXPECT_LE(moments.largest, std::sqrt(3 * variance) * 1.0001);
  EXPECT_NEAR(moments.deviation, std::sqrt(variance), 0.03 * std::sqrt(variance));
}

TEST(InitialValue, OrthogonalRowsOrColumnsAreOrthonormal) {
  for (const auto& size : {std::pair(12, 5), std::pair(5, 12), std::pair(7, 7)}) {
    const int rows = size.first, columns = size.second;
    const Tensor tensor = initialValue("orthogonal", Shape{rows, columns}, 3, 0);
    const auto values = tensor.as<float>();
    const bool wide = rows < columns;
    const int vectors = wide ? rows : columns, length = wide ? columns : rows;
    const auto element = [&](int vector, int i) {
      return values[static_cast<size_t>(wide ? vector * columns + i : i * columns + vector)];
    };
    for (int a = 0; a < vectors; ++a) {
      for (int b = 0; b <= a; ++b) {
        double product = 0;
        for (int i = 0; i < length; ++i) product += double{element(a, i)} * element(b, i);
        EXPECT_NEAR(product, a == b ? 1 : 0, 1e-6) << rows << " x " << columns;
      }
    }
  }
}

TEST(InitialValue, ZerosAreZeroAndOnesAreOne) {
  const Tensor ones = initialValue("ones", Shape{3}, 1, 0);
  EXPECT_TRUE(std::ranges::all_of(ones.as<float>(), [](float one) { return one == 1; }));
  EXPECT_EQ(momentsOf(initialValue("zeros", Shape{10}, 1, 0)).largest, 0);
  const Tensor constant = initialValue("constant=-0.25", Shape{3}, 1, 0);
  EXPECT_TRUE(std::ranges::all_of(constant.as<float>(), [](float each) { return each == -0.25F; }));
}

TEST(InitialValue, DependsOnSeedAndVariableAlone) {
  const auto values = [](uint64_t seed, uint32_t index) {
    const Tensor tensor = initialValue("glorot_uniform", Shape{4, 4}, seed, index);
    const auto span = tensor.as<float>();
    return std::vector<float>(span.begin(), span.end());
  };
  EXPECT_EQ(values(1, 0), values(1, 0));
  EXPECT_NE(values(1, 0), values(2, 0));
  EXPECT_NE(values(1, 0), values(1, 1));
}

TEST(InitialArenas, HoldEveryVariableWhetherWholeOrSplit) {
  const model::ModelGraph model = model::buildTrainingGraph(model::softmaxModel(), 10);
  for (const uint64_t partition_min_bytes : {0, 1024}) {
    cluster::PlacementSpec spec;
    spec.partition_min_bytes = partition_min_bytes;
    const arena::ParameterLayout layout = layoutOf(model, placeModel(model.graph, spec, 2, 0));
    EXPECT_EQ(layout.variables[0].name, "softmax/weights");
    const std::vector<Buffer> arenas = initialArenas(model, layout, 5);
    const Tensor expected = initialValue("glorot_uniform", Shape{784, 10}, 5, 0);
    uint64_t found = 0;
    for (size_t shard = 0; shard < arenas.size(); ++shard) {
      EXPECT_EQ(arenas[shard].bytes(), layout.shards[shard].elements * sizeof(float));
      for (const arena::Slice& slice : layout.shards[shard].slices) {
        if (slice.variable != 0) continue;
        found += slice.count;
        EXPECT_TRUE(std::equal(
            expected.as<float>().begin() + static_cast<int64_t>(slice.begin),
            expected.as<float>().begin() + static_cast<int64_t>(slice.begin + slice.count),
            arenas[shard].as<float>() + slice.offset));
      }
    }
    EXPECT_EQ(found, 7840u);
  }
}

TEST(LayoutOf, RefusesAVariableOnAWorker) {
  const model::ModelGraph model = model::buildTrainingGraph(model::softmaxModel(), 10);
  cluster::PlacementSpec spec;
  spec.pins = {{"softmax/biases", "/job:worker/task:0"}};
  try {
    layoutOf(model, placeModel(model.graph, spec, 2, 0));
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBadConfig);
    EXPECT_NE(error.message().find("variable 'softmax/biases' is placed on /job:worker"),
              std::string::npos)
        << error.message();
  }
}

TEST(LayoutOf, EveryWorkerComputesTheSame) {
  const model::ModelGraph model = model::buildTrainingGraph(model::softmaxModel(), 10);
  EXPECT_EQ(layoutOf(model, placeModel(model.graph, {}, 3, 0)),
            layoutOf(model, placeModel(model.graph, {}, 3, 7)));
}

TEST(DeclarationOf, FillsInTheReplicas) {
  cluster::TrainSpec train;
  train.replication.mode = cluster::ReplicationSpec::Mode::kSync;
  arena::ModelDeclaration declaration = declarationOf(train, {}, 3);
  EXPECT_EQ(declaration.replication.total_num_replicas, 3u);
  EXPECT_EQ(declaration.replication.replicas_to_aggregate, 3u);
  train.replication.replicas_to_aggregate = 2;
  declaration = declarationOf(train, {}, 3);
  EXPECT_EQ(declaration.replication.replicas_to_aggregate, 2u);
}

TEST(InitialValues, ProgressGrowsToTheEnd) {
  std::vector<uint64_t> done;
  const Shape shape{3, static_cast<int64_t>(kInitialBlockElements)};
  const Tensor told = initialValue("glorot_uniform", shape, 1, 0,
                                   [&](uint64_t elements) { done.push_back(elements); });
  EXPECT_EQ(done, (std::vector<uint64_t>{kInitialBlockElements, 2 * kInitialBlockElements,
                                         3 * kInitialBlockElements}));
  const Tensor untold = initialValue("glorot_uniform", shape, 1, 0);
  EXPECT_TRUE(std::ranges::equal(told.as<float>(), untold.as<float>()));
}

}  // namespace
}  // namespace dtf::train
