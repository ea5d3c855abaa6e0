// A tensor of 3 GiB that one task sends another in a step: more bytes than 31 bits count, in many
// blobs of one message. Each of its rows of 64 KiB has a value of its own.

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "common/base/host_memory.h"
#include "common/engine/session.h"
#include "common/graph/builder.h"
#include "common/graph/op_def.h"
#include "common/wire/session/remote_tasks.h"
#include "tests/e2e/cluster_fixture.h"

namespace dtf::testing {
namespace {

constexpr auto kSoon = std::chrono::seconds(60);
constexpr int64_t kRows = 3 << 14, kColumns = 1 << 14;
constexpr uint64_t kBytes = uint64_t{kRows} * kColumns * sizeof(float);
constexpr uint64_t kMemory = uint64_t{8} << 30;  // the tensor at both ends, and room for the rest

class LargeTensorTest : public ClusterTest {
 protected:
  const std::vector<int> ports_ = freePorts(2);
};

TEST_F(LargeTensorTest, ThreeGibibytesArriveWhereTheyWereSent) {
  static_assert(kBytes == uint64_t{3} << 30);
  const uint64_t available = hostMemory().available;
  if (available < kMemory)
    GTEST_SKIP() << "a tensor of 3 GiB on two tasks takes 8 GiB of memory, and "
                 << (available >> 20) << " MiB are available";
  const std::string file = writeCluster({.ps = 1, .workers = 1, .ports = ports_});
  Process ps = startTask(file, "ps", 0, {"--serve"});
  Process worker = startTask(file, "worker", 0, {"--serve"});
  for (Process* task : {&ps, &worker})
    ASSERT_TRUE(task->waitForOutput("event=serving", kSoon)) << task->err();

  graph::Graph graph(graph::standardOps());
  graph::Builder b(graph);
  graph::Output large;
  {
    const auto on_ps = b.deviceScope("/job:ps/task:0");
    large = b.broadcastTo(b.placeholder("x", DType::kFloat32, {kRows, 1}), {kRows, kColumns});
  }
  const auto on_worker = b.deviceScope("/job:worker/task:0");
  std::vector<std::string> fetches;
  for (const int64_t column : {int64_t{0}, kColumns / 2, kColumns - 1})
    fetches.push_back(graph.node(b.slice(large, {0, column}, {kRows, 1}).node).name);
  const auto target = [&](size_t task) {
    return "dtf://localhost:" + std::to_string(ports_[task]);
  };
  engine::Session session(graph, std::make_unique<wire::RemoteTasks>(
                                     wire::RemoteTasksOptions{.targets = {target(0), target(1)}}));

  Tensor x(DType::kFloat32, {kRows, 1});
  std::iota(x.as<float>().begin(), x.as<float>().end(), 1.0F);
  // Twice: the second step runs in the memory that the first one left.
  for (int step = 0; step < 2; ++step) {
    const std::vector<Tensor> columns = session.run(std::vector<engine::Feed>{{"x", &x}}, fetches);
    ASSERT_EQ(columns.size(), fetches.size());
    for (const Tensor& column : columns)
      EXPECT_TRUE(std::equal(column.as<float>().begin(), column.as<float>().end(),
                             x.as<float>().begin(), x.as<float>().end()));
    for (float& value : x.as<float>()) value = -value;
  }
}

}  // namespace
}  // namespace dtf::testing
