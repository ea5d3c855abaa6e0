// Valid and invalid `run.feeds` and `run.data` in a graph's file.

#include "common/model/graph_feed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/model/read_graph.h"
#include "tests/support/temporary_files.h"

namespace dtf::model {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class GraphFeedTest : public ::testing::Test {
 protected:
  // Reads a file with Placeholders in lines 2 and 3, and `run` from line 5 on.
  GraphSpec read(const std::string& run) {
    files_.write("graph.yaml", R"(ops:
  - Placeholder: {name: x, dtype: float32, shape: [2, 2]}
  - Placeholder: {name: n, dtype: uint8, shape: []}
run:
)" + run);
    yaml::Report report;
    return readGraphFile("graph.yaml", report);
  }
  std::string error(const std::string& run) {
    return dtf::testing::badConfigOf([&] { read(run); });
  }
  dtf::testing::TemporaryFiles files_;
};

TEST_F(GraphFeedTest, NumbersForAllElementsOrForEach) {
  const GraphSpec spec = read("  feeds: {x: [[1, 2.5], [-3, 4]], \"n:0\": 7}\n");
  ASSERT_EQ(spec.feeds.size(), 2u);
  EXPECT_EQ(spec.feeds[0].tensor, "x");
  EXPECT_EQ(spec.feeds[0].spec, (graph::TensorSpec{DType::kFloat32, {2, 2}}));
  EXPECT_THAT(spec.feeds[0].numbers, ElementsAre(1, 2.5, -3, 4));
  EXPECT_EQ(spec.feeds[1].tensor, "n:0");
  EXPECT_THAT(spec.feeds[1].numbers, ElementsAre(7));
  EXPECT_THAT(read("  feeds: {x: 0.5}\n").feeds[0].numbers, ElementsAre(0.5));
  EXPECT_FALSE(spec.data);
}

TEST_F(GraphFeedTest, PartsOfTheData) {
  const GraphSpec spec = read("  feeds: {x: features}\n  data: {format: digits}\n");
  EXPECT_EQ(spec.feeds.at(0).part, "features");
  ASSERT_TRUE(spec.data);
  EXPECT_EQ(spec.data->find("format")->text, "digits");
}

TEST_F(GraphFeedTest, ATowersOwnBatch) {
  const GraphSpec spec = read(
      "  feeds: {x: {data: labels, tower: 1}, n: {data: features}}\n  data: {format: digits}\n");
  EXPECT_EQ(spec.feeds.at(0).part, "labels");
  EXPECT_EQ(spec.feeds.at(0).tower, 1);
  EXPECT_EQ(spec.feeds.at(1).tower, 0);
  EXPECT_THAT(error("  feeds: {x: {tower: 1}}\n"), HasSubstr("missing key 'data' in 'x'"));
  EXPECT_THAT(error("  feeds: {x: {data: pixels}}\n"), HasSubstr("'pixels'"));
  EXPECT_THAT(error("  feeds: {x: {data: labels, tower: -1}}\n"),
              HasSubstr("'tower' must be from"));
  EXPECT_THAT(error("  feeds: {x: {data: labels}}\n"), HasSubstr("which 'run' doesn't have"));
}

TEST_F(GraphFeedTest, MistakesAreToldAtTheirLines) {
  EXPECT_THAT(error("  feeds: {z: 1}\n"),
              AllOf(HasSubstr("graph.yaml:5:11: error:"), HasSubstr("'z'")));
  EXPECT_THAT(error("  feeds: {x: [1, 2, 3]}\n"),
              HasSubstr("'x' is float32[2, 2]: the list has 3 numbers, it must have 4"));
  EXPECT_THAT(error("  feeds: {n: 256}\n"),
              AllOf(HasSubstr("graph.yaml:5:"), HasSubstr("256 is none of its numbers")));
  EXPECT_THAT(error("  feeds: {n: 1.5}\n"), HasSubstr("1.5 is none of its numbers"));
  EXPECT_THAT(error("  feeds: {x: pixels}\n"), HasSubstr("'features' or 'labels' of 'data'"));
  EXPECT_THAT(error("  feeds: {x: {a: 1}}\n"), HasSubstr("a number, a list of numbers"));
  EXPECT_THAT(error("  feeds: {x: [1, 2, three, 4]}\n"), HasSubstr("three"));
  EXPECT_THAT(error("  feeds: {x: labels}\n"),
              HasSubstr("'x' is fed labels of 'data', which 'run' doesn't have"));
  EXPECT_THAT(error("  data: {format: digits}\n"), HasSubstr("nothing is fed features or labels"));
}

}  // namespace
}  // namespace dtf::model
