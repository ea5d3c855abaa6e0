#include <gtest/gtest.h>

#include "common/graph/builder.h"
#include "common/graph/op_def.h"
#include "common/graph/placer.h"

namespace dtf::graph {
namespace {

class PlacementTable : public ::testing::Test {
 protected:
  PlacementTable() {
    options_.ps_tasks = 2;
    options_.worker = fullDevice({JobKind::kWorker, 0});
  }

  Graph graph_{standardOps()};
  Builder b_{graph_};
  PlacerOptions options_;
};

TEST_F(PlacementTable, PrintsATable) {
  options_.partition_min_bytes = 1 << 20;
  b_.variable("softmax/weights", {784, 10});
  b_.variable("softmax/biases", {10});
  b_.variable("embedding", {1 << 10, 1 << 10});
  EXPECT_EQ(placementTable(place(graph_, options_)),
            "variable         shape             size  device\n"
            "softmax/weights  [784, 10]     30.6 KiB  /job:ps/task:0\n"
            "softmax/biases   [10]              40 B  /job:ps/task:1\n"
            "embedding        [1024, 1024]   4.0 MiB  /job:ps/task:0..1 (split in 2)\n"
            "ps/0                            2.0 MiB  50.4 %\n"
            "ps/1                            2.0 MiB  49.6 %\n"
            "total                           4.0 MiB  3 variable(s)\n");
}

TEST_F(PlacementTable, EachShardHasTheNameOfItsTask) {
  options_.ps_tasks = 3;
  options_.partition_min_bytes = 4;
  options_.pins["table"] = "/job:ps/task:0";
  b_.variable("table", {16});
  b_.variable("dense", {32});
  options_.strategy = PlacementStrategy::kHybrid;
  options_.sparse_shards = 1;
  EXPECT_EQ(placementTable(place(graph_, options_), {1, 2}),
            "variable  shape   size  device\n"
            "table     [16]    64 B  /job:ps/task:0\n"
            "dense     [32]   128 B  /job:worker/task:0..1 (split in 2)\n"
            "ps/0              64 B  33.3 %\n"
            "worker/0          64 B  33.3 %\n"
            "worker/1          64 B  33.3 %\n"
            "total            192 B  2 variable(s)\n");
}

// The 8 look-ups of a step push at most as many rows as the table has.
TEST_F(PlacementTable, TheTableSaysWhatGradientsHaveRows) {
  const Output ids = b_.placeholder("ids", DType::kInt32, {2, 4});
  for (const int64_t rows : {1000, 5}) {
    const Output table = b_.variable("table" + std::to_string(rows), {rows, 16});
    b_.applySparseGradient(table, b_.gather(table, ids), ids);
  }
  b_.variable("biases", {10});
  const Placement placement = place(graph_, options_);
  EXPECT_EQ(placement.variables[0].gradientBytesMax(), 8u * (1 + 16) * 4);
  EXPECT_EQ(placement.variables[2].gradientBytesMax(), 40u);
  EXPECT_EQ(placementTable(placement),
            "variable   shape           size  gradient               device\n"
            "table1000  [1000, 16]  62.5 KiB  at most 8 rows, 544 B  /job:ps/task:0\n"
            "table5     [5, 16]        320 B  at most 5 rows, 340 B  /job:ps/task:1\n"
            "biases     [10]            40 B  40 B                   /job:ps/task:0\n"
            "ps/0                   62.5 KiB                         99.5 %\n"
            "ps/1                      320 B                         0.5 %\n"
            "total                  62.9 KiB                         3 variable(s)\n");
}

}  // namespace
}  // namespace dtf::graph
