#include "common/train/initial_values.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "common/arena/initial_value.h"
#include "common/base/error.h"
#include "tests/unit/model/models.h"

namespace dtf::train {
namespace {

TEST(InitialArenas, HoldEveryVariableWhetherWholeOrSplit) {
  const model::ModelGraph model = model::buildTrainingGraph(model::softmaxModel(), 10);
  for (const uint64_t partition_min_bytes : {0, 1024}) {
    cluster::PlacementSpec spec;
    spec.partition_min_bytes = partition_min_bytes;
    const arena::ParameterLayout layout = layoutOf(model, placeModel(model.graph, spec, 2, 0));
    EXPECT_EQ(layout.variables[0].name, "softmax/weights");
    const std::vector<Buffer> arenas = initialArenas(model, layout, 5);
    const Tensor expected = arena::initialValue("glorot_uniform", Shape{784, 10}, 5, 0);
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

}  // namespace
}  // namespace dtf::train
