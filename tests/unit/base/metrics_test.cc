#include "common/base/metrics.h"

#include <gtest/gtest.h>

#include <limits>

namespace dtf {
namespace {

TEST(Metrics, EachHasItsHelpItsKindAndALineAValue) {
  const std::vector<Metric> metrics = {
      counter("steps_total", "Steps taken.", 12),
      gauge("loss", "The last loss.", 0.25),
      {"workers",
       "By state.",
       Metric::Kind::kGauge,
       {{3, {{"state", "joined"}}}, {0, {{"state", "lost"}}}}},
  };
  EXPECT_EQ(metricsText(metrics, {}),
            "# HELP steps_total Steps taken.\n"
            "# TYPE steps_total counter\n"
            "steps_total 12\n"
            "# HELP loss The last loss.\n"
            "# TYPE loss gauge\n"
            "loss 0.25\n"
            "# HELP workers By state.\n"
            "# TYPE workers gauge\n"
            "workers{state=\"joined\"} 3\n"
            "workers{state=\"lost\"} 0\n");
}

TEST(Metrics, CommonLabelsComeFirstAndAreEscaped) {
  const std::vector<Metric> metrics = {
      {"up", "Up.", Metric::Kind::kGauge, {{1, {{"kind", "a\\b\"c\nd"}}}}}};
  EXPECT_EQ(metricsText(metrics, {{"task", "ps/0"}}),
            "# HELP up Up.\n# TYPE up gauge\n"
            "up{task=\"ps/0\",kind=\"a\\\\b\\\"c\\nd\"} 1\n");
}

TEST(Metrics, NumbersAreWholeToTheLastBitAndHaveNamesWhereTheyAreNone) {
  const auto valueText = [](double value) {
    const std::vector<Metric> metrics = {gauge("x", "X.", value)};
    const std::string text = metricsText(metrics, {});
    return text.substr(text.rfind('x') + 2);
  };
  EXPECT_EQ(valueText(0.1), "0.1\n");
  EXPECT_EQ(std::stod(valueText(1.0 / 3)), 1.0 / 3);
  EXPECT_EQ(std::stod(valueText(9007199254740991)), 9007199254740991);
  EXPECT_EQ(valueText(std::numeric_limits<double>::quiet_NaN()), "NaN\n");
  EXPECT_EQ(valueText(std::numeric_limits<double>::infinity()), "+Inf\n");
  EXPECT_EQ(valueText(-std::numeric_limits<double>::infinity()), "-Inf\n");
}

TEST(Metrics, TheBucketsOfAHistogramAddUp) {
  const std::vector<Metric> metrics = {{"step_seconds",
                                        "Of a step.",
                                        Metric::Kind::kHistogram,
                                        {},
                                        {{{0.001, 2}, {0.01, 0}, {0.1, 5}}, 1, 0.75}}};
  EXPECT_EQ(metricsText(metrics, {{"task", "worker/0"}}),
            "# HELP step_seconds Of a step.\n"
            "# TYPE step_seconds histogram\n"
            "step_seconds_bucket{task=\"worker/0\",le=\"0.001\"} 2\n"
            "step_seconds_bucket{task=\"worker/0\",le=\"0.01\"} 2\n"
            "step_seconds_bucket{task=\"worker/0\",le=\"0.1\"} 7\n"
            "step_seconds_bucket{task=\"worker/0\",le=\"+Inf\"} 8\n"
            "step_seconds_sum{task=\"worker/0\"} 0.75\n"
            "step_seconds_count{task=\"worker/0\"} 8\n");
}

}  // namespace
}  // namespace dtf
