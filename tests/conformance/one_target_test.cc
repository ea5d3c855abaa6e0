// Sessions of clients that have the address of one of several tasks.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "common/engine/session.h"
#include "tests/conformance/session_harness.h"
#include "tests/unit/graph/error_text.h"

namespace dtf::engine {
namespace {

using graph::testing::errorText;
using testing::floats;
using ::testing::HasSubstr;
using testing::kPs0;
using testing::kWorker0;
using testing::kWorker1;
using testing::SessionHarness;

// Over sockets; the client only has worker/0's address.
class OneTargetTest : public ::testing::Test {
 protected:
  OneTargetTest() { options_.targets = {harness_.server(kWorker0).target()}; }
  // Opens a session and returns its devices.
  std::vector<std::string> opened(std::set<TaskId> wanted) {
    options_.wanted = std::move(wanted);
    const wire::RemoteTasks tasks(options_);
    std::vector<std::string> names;
    for (const graph::DeviceName& device : tasks.devices()) names.push_back(device.str());
    return names;
  }
  graph::Graph graph_{graph::standardOps()};
  SessionHarness harness_{true,
                          {graph::fullDevice(kWorker0), graph::fullDevice(kWorker0, "CPU", 1),
                           graph::fullDevice(kWorker1), graph::fullDevice(kPs0)}};
  wire::RemoteTasksOptions options_;
};

TEST_F(OneTargetTest, TheTasksThatAGraphNamesAreFoundThroughIt) {
  harness_.stop(kWorker1);  // nobody needs it
  graph::Builder b(graph_);
  {
    const auto anywhere = b.deviceScope("/job:worker");  // any worker will do
    b.node("Relu", {b.placeholder("unused", DType::kFloat32, {1})}, {}, "z");
  }
  const auto there = b.deviceScope("/job:ps/task:0");
  b.node("Relu", {b.placeholder("x", DType::kFloat32, {1})}, {}, "y");
  options_.wanted = wire::tasksNamedIn(graph_);
  EXPECT_EQ(options_.wanted, std::set<TaskId>{kPs0});
  Session session(graph_, std::make_unique<wire::RemoteTasks>(options_));
  const Tensor two = floats({1}, {2});
  const auto values = session.run(std::vector<Feed>{{"x", &two}}, std::vector<std::string>{"y"});
  EXPECT_EQ(values.at(0).as<float>()[0], 2);
}

TEST_F(OneTargetTest, ATargetIsNotReachedTwiceAndAnUnknownTaskNotAtAll) {
  const std::vector<std::string> own = {"/job:worker/replica:0/task:0/device:CPU:0",
                                        "/job:worker/replica:0/task:0/device:CPU:1"};
  EXPECT_EQ(opened({kWorker0}), own);
  EXPECT_EQ(opened({{JobKind::kPs, 7}}), own);
}

TEST_F(OneTargetTest, AWantedTaskThatIsGoneIsNamed) {
  harness_.stop(kPs0);
  options_.limits.connect_max = std::chrono::milliseconds(200);
  EXPECT_THAT(errorText([&] { opened({kPs0}); }), HasSubstr("cannot reach ps/0 (127.0.0.1:"));
}

}  // namespace
}  // namespace dtf::engine
