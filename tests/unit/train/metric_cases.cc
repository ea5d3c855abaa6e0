#include "tests/unit/train/metric_cases.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <span>

#include "common/model/metrics.h"

namespace dtf::train {

std::optional<double> valueOf(const model::MetricSpec& metric, OutputScale scale,
                              const JudgedCase& all, size_t batch) {
  const std::unique_ptr<Metric> made = makeMetric(metric, scale, all.units);
  const auto units = static_cast<size_t>(all.units);
  const size_t examples = all.outputs.size() / units;
  for (size_t begin = 0; begin < examples; begin += batch) {
    const size_t count = std::min(batch, examples - begin);
    Judged judged{all.units, std::span(all.outputs).subspan(begin * units, count * units), {}, {}};
    if (all.targets.empty())
      judged.classes = std::span(all.classes).subspan(begin, count);
    else
      judged.targets = std::span(all.targets).subspan(begin * units, count * units);
    made->add(judged);
  }
  return made->value();
}

void expectMetricNear(const model::MetricSpec& metric, OutputScale scale, const JudgedCase& all,
                      double expected) {
  SCOPED_TRACE(model::nameOf(metric));
  for (const size_t batch : {1, 3, 100}) {
    const std::optional<double> found = valueOf(metric, scale, all, batch);
    ASSERT_TRUE(found.has_value());
    EXPECT_NEAR(*found, expected, 1e-9) << "in batches of " << batch;
  }
}

}  // namespace dtf::train
