#include "launcher/json_fields.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace dtf::launcher {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

Json someFields() {
  return {{"text", "x"}, {"count", 3}, {"number", 0.5}, {"below", -1}};
}

TEST(JsonFields, AFieldIsReadAsItsType) {
  const Json fields = someFields();
  EXPECT_EQ(textOf(fields, "text"), "x");
  EXPECT_EQ(countOf(fields, "count"), 3u);
  EXPECT_EQ(numberOf(fields, "number"), 0.5);
  EXPECT_EQ(numberOf(fields, "count"), 3.0);
}

TEST(JsonFields, AFieldOfAnotherTypeCountsAsMissing) {
  const Json fields = someFields();
  EXPECT_EQ(textOf(fields, "count"), "");
  EXPECT_EQ(textOf(fields, "gone"), "");
  EXPECT_EQ(countOf(fields, "below"), std::nullopt);
  EXPECT_EQ(countOf(fields, "number"), std::nullopt);
  EXPECT_EQ(numberOf(fields, "text"), std::nullopt);
  EXPECT_EQ(numberOf({{"n", std::nan("")}}, "n"), std::nullopt);
}

TEST(JsonFields, WhatIsNoObjectHasNoFields) {
  EXPECT_EQ(textOf(Json(), "text"), "");
  EXPECT_EQ(countOf(Json::array({1}), "count"), std::nullopt);
  EXPECT_TRUE(metricsOf(Json("mae")).empty());
}

TEST(JsonFields, MetricsAreTheNumbersWithTheNameOfAMetric) {
  const Json evaluation = {
      {"loss", 0.1}, {"accuracy", 0.9}, {"mae", 0.7}, {"auc", "x"}, {"examples", 1}};
  EXPECT_THAT(metricsOf(evaluation), ElementsAre(Pair("mae", 0.7)));
}

}  // namespace
}  // namespace dtf::launcher
