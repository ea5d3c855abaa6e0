#include <dtf/checkpoint.h>
#include <dtf/saver.h>
#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>

#include "tests/unit/api/errors.h"

namespace dtf::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// Two checkpoints of a graph that was trained for three steps. Removed at its end.
class ApiCheckpoint : public ::testing::Test {
 protected:
  ApiCheckpoint() : folder_(::testing::TempDir() + "checkpoint-XXXXXX") {
    EXPECT_NE(mkdtemp(folder_.data()), nullptr);
    Graph graph;
    const Output w = graph.variable("w", {2, 1}, "ones");
    graph.counter("examples");
    const std::string train = graph.name(graph.minimize(graph.sum(w), Momentum{}).train);
    Session session(graph);
    session.initialize();
    Saver saver({.job = "drawn"});
    for (int step = 1; step <= 3; ++step) {
      session.run({}, {}, {train});
      if (step > 1) saver.save(session, folder_);
    }
    const auto values = session.run({}, {"w"});
    value_ = values[0].as<float>()[0];
  }
  ~ApiCheckpoint() override { std::filesystem::remove_all(folder_); }

  std::string folder_;
  float value_ = 0;
};

TEST_F(ApiCheckpoint, HasTheNewestOfAFolder) {
  const Checkpoint checkpoint(folder_);
  EXPECT_EQ(checkpoint.path(), folder_ + "/step-3");
  EXPECT_EQ(checkpoint.step(), 3u);
  EXPECT_EQ(checkpoint.job(), "drawn");
  EXPECT_EQ(Checkpoint(folder_ + "/step-2").step(), 2u);
}

TEST_F(ApiCheckpoint, ReadsVariablesSlotsAndCounters) {
  const Checkpoint checkpoint(folder_);
  EXPECT_THAT(checkpoint.names(), ElementsAre("w", "w/Momentum", "examples", "global_step"));
  const Tensor w = checkpoint.read("w");
  EXPECT_EQ(w.dims(), (Dims{2, 1}));
  EXPECT_EQ(w.as<float>()[1], value_);
  EXPECT_EQ(checkpoint.read("w/Momentum").dims(), (Dims{2, 1}));
  const Tensor step = checkpoint.read("global_step"), examples = checkpoint.read("examples");
  EXPECT_EQ(step.as<int64_t>()[0], 3);
  EXPECT_EQ(examples.as<int64_t>()[0], 0);
}

TEST_F(ApiCheckpoint, MistakesAreNamed) {
  EXPECT_THAT(refusal([] { Checkpoint(""); }),
              AllOf(StartsWith("78: "), HasSubstr("path of the checkpoint is empty")));
  EXPECT_THAT(refusal([&] { Checkpoint(folder_ + "/none"); }),
              AllOf(StartsWith("65: "), HasSubstr("there is no checkpoint in")));
  const Checkpoint checkpoint(folder_);
  EXPECT_THAT(refusal([&] { checkpoint.read("v"); }),
              AllOf(StartsWith("78: "), HasSubstr("has no tensor 'v'")));
  std::filesystem::resize_file(folder_ + "/step-3/shard-0-of-1.safetensors", 100);
  EXPECT_THAT(refusal([&] { checkpoint.read("w"); }), StartsWith("65: "));
  EXPECT_EQ(Checkpoint(folder_).step(), 2u) << "the damaged one is left out";
}

}  // namespace
}  // namespace dtf::testing
