#include "launcher/graph_feeds.h"

#include <gmock/gmock.h>

#include <memory>
#include <optional>
#include <set>

#include "common/base/error.h"
#include "tests/support/temporary_files.h"

namespace dtf::launcher {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class GraphFeedsTest : public ::testing::Test {
 protected:
  GraphFeedsTest() {
    std::string table = "a,b,class\n";
    for (int i = 0; i < 6; ++i)
      table +=
          std::to_string(i) + "," + std::to_string(10 * i) + "," + std::to_string(i % 2) + "\n";
    files_.write("table.csv", table);
  }

  // Opens the feeds of a file with these placeholders and this `run`, whose first line is line 6.
  std::unique_ptr<GraphFeeds> open(const std::string& run, const std::string& x = "[2, 2]") {
    files_.write("graph.yaml", "ops:\n  - Placeholder: {name: x, dtype: float32, shape: " + x +
                                   "}\n  - Placeholder: {name: c, dtype: int32, shape: [2]}\n" +
                                   "  - Placeholder: {name: n, dtype: int64, shape: [3]}\n" +
                                   more_ + "run:\n" + run);
    yaml::Report report;
    spec_.emplace(model::readGraphFile("graph.yaml", report));
    return std::make_unique<GraphFeeds>(*spec_, report);
  }
  std::string error(const std::string& run, const std::string& x = "[2, 2]") {
    return dtf::testing::badConfigOf([&] { open(run, x); });
  }

  const std::string data_ = "  data: {format: csv, files: [table.csv], label_column: class}\n";
  dtf::testing::TemporaryFiles files_;
  std::string more_;  // ops
  std::optional<model::GraphSpec> spec_;
};

TEST_F(GraphFeedsTest, NumbersAreTheSameInAllSteps) {
  const auto feeds = open("  feeds: {x: 0.5, n: [1, -2, 3]}\n");
  for (const int64_t step : {1, 2}) {
    const auto& fed = feeds->of(step);
    ASSERT_EQ(fed.size(), 2u);
    EXPECT_THAT(fed[0].value->as<float>(), ElementsAre(0.5, 0.5, 0.5, 0.5));
    EXPECT_THAT(fed[1].value->as<int64_t>(), ElementsAre(1, -2, 3));
  }
  EXPECT_THAT(fedTensors(*spec_), ElementsAre("n", "x"));
}

// Three batches of two are an epoch: each example once, with its label.
TEST_F(GraphFeedsTest, BatchesGoThroughTheDataInAnOrderOfTheSeed) {
  const std::string run = "  feeds: {x: features, c: labels}\n" + data_;
  const auto feeds = open(run), again = open(run), other = open(run + "  seed: 5\n");
  std::vector<float> order, order_again, order_other;
  for (int64_t step = 1; step <= 6; ++step) {
    const auto x = feeds->of(step)[0].value->as<float>();
    const auto c = feeds->of(step)[1].value->as<int32_t>();
    for (size_t i = 0; i < 2; ++i) {
      EXPECT_EQ(x[2 * i + 1], 10 * x[2 * i]);
      EXPECT_EQ(c[i], static_cast<int>(x[2 * i]) % 2);
      order.push_back(x[2 * i]);
      order_again.push_back(again->of(step)[0].value->as<float>()[2 * i]);
      order_other.push_back(other->of(step)[0].value->as<float>()[2 * i]);
    }
  }
  EXPECT_EQ(order, order_again);
  EXPECT_NE(order, order_other);
  EXPECT_EQ(std::set<float>(order.begin(), order.begin() + 6).size(), 6u);
  EXPECT_EQ(std::set<float>(order.begin() + 6, order.end()).size(), 6u);
}

// Two batches of one example are what one batch of two is, one after the other.
TEST_F(GraphFeedsTest, EachTowerTakesItsPartOfAStepsExamples) {
  const auto step = [this](const std::string& run, const std::string& x, int64_t at) {
    const auto feeds = open(run, x);
    std::vector<float> values;
    for (const engine::Feed& feed : feeds->of(at))
      if (feed.value->dtype() == DType::kFloat32)
        for (const float value : feed.value->as<float>()) values.push_back(value);
    return values;
  };
  const std::string joined = "  feeds: {x: features}\n" + data_;
  const std::string own =
      "  feeds: {x: {data: features, tower: 0}, y: {data: features, tower: 1}}\n" + data_;
  more_ = "  - Placeholder: {name: y, dtype: float32, shape: [1, 2]}\n";
  for (int64_t at = 1; at <= 6; ++at)
    EXPECT_EQ(step(own, "[1, 2]", at), step(joined, "[2, 2]", at)) << at;
  EXPECT_EQ(step(own, "[3, 2]", 1).size(), 8u) << "towers may differ in size";
  EXPECT_THAT(error("  feeds: {y: {data: features, tower: 2}, x: features}\n" + data_),
              HasSubstr("'y' takes the batch of tower 2, and no feed that of tower 1: number the "
                        "towers from 0"));
}

TEST_F(GraphFeedsTest, WhatIsNoBatchOfTheDataIsRefusedAtItsLine) {
  const std::string feeds = "  feeds: {x: features, c: labels}\n" + data_;
  EXPECT_THAT(
      error(feeds, "[3, 2]"),
      AllOf(HasSubstr("graph.yaml:6:"), HasSubstr("'c' takes 2 examples in a step, 'x' takes 3")));
  EXPECT_THAT(error(feeds, "[2, 3]"), HasSubstr("are float32[2] each: make it float32[2, 2]"));
  EXPECT_THAT(error(feeds, "[]"), HasSubstr("make it float32[1, 2]"));
  EXPECT_THAT(error("  feeds: {n: labels}\n" + data_), HasSubstr("make it int32[3]"));
  EXPECT_THAT(error("  feeds: {x: features}\n" + data_, "[7, 2]"), HasSubstr("7"))
      << "more than there are";
  EXPECT_THAT(error("  feeds: {x: features}\n  data: {format: csv}\n"),
              AllOf(HasSubstr("graph.yaml:7:"), HasSubstr("files")));
}

// 8 GB that don't fit the data: the shapes are compared before memory is allocated.
TEST_F(GraphFeedsTest, MemoryIsTakenWhenTheFirstStepIsFed) {
  EXPECT_THAT(error("  feeds: {x: features, c: labels}\n" + data_, "[2, 1000000000]"),
              HasSubstr("make it float32[2, 2]"));
  EXPECT_NO_THROW(open("  feeds: {x: 0.5}\n", "[2, 1000000000]"));
}

}  // namespace
}  // namespace dtf::launcher
