#include "common/wire/ps/shard_traffic.h"

#include <gtest/gtest.h>

namespace dtf::wire {
namespace {

// A matrix and its biases on ps/0, a table on ps/1.
arena::ModelDeclaration modelSending(cluster::ReplicationSpec::TransferDtype dtype) {
  arena::ModelDeclaration model;
  model.layout = arena::makeLayout({{"weights", Shape{64, 64}, {{0, 0, 4096}}},
                                    {"biases", Shape{64}, {{0, 0, 64}}},
                                    {"table", Shape{100, 16}, {{1, 0, 1600}}, std::nullopt, true}},
                                   2);
  model.replication.transfer_dtype = dtype;
  return model;
}

using enum cluster::ReplicationSpec::TransferDtype;

TEST(ShardTraffic, ALossyJobKnowsTheVariablesOfItsShards) {
  const arena::ModelDeclaration model = modelSending(kInt8);
  const ShardTraffic first = trafficOf(model, 0, 0), second = trafficOf(model, 0, 1);
  EXPECT_EQ(first.elements, model.layout.shards[0].elements);
  ASSERT_EQ(first.ranges.slices.size(), 1u);
  EXPECT_EQ(first.ranges.slices[0].end - first.ranges.slices[0].begin, 4096u);
  EXPECT_EQ(first.ranges.exact.size(), 1u) << "the biases";
  EXPECT_TRUE(first.sparse.empty());
  EXPECT_TRUE(first.job.has_tables) << "on another shard";
  EXPECT_EQ(second.sparse.size(), 1u);
  EXPECT_TRUE(second.ranges.slices.empty());
}

TEST(ShardTraffic, ThePlanCountsEncodedBytes) {
  LinkOptions options;
  options.stream_from_bytes = 10'000;
  const auto streams = [&options](cluster::ReplicationSpec::TransferDtype dtype) {
    ShardTraffic traffic = trafficOf(modelSending(dtype), 0, 0);
    traffic.job.has_tables = false;
    return planOf(traffic, options).streaming.is_used;
  };
  EXPECT_TRUE(streams(kFloat32)) << "16 KiB";
  EXPECT_FALSE(streams(kBFloat16));
  EXPECT_FALSE(streams(kInt8));
}

}  // namespace
}  // namespace dtf::wire
