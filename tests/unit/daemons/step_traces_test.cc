#include "daemons/step_traces.h"
#include "common/base/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "common/base/trace.h"
#include "tests/support/http_collector.h"

namespace dtf::daemons {
namespace {

using dtf::testing::HttpCollector;
using ::testing::HasSubstr;

constexpr const char* kTaken = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}";

cluster::TaskOptions asking(uint16_t port) {
  cluster::TaskOptions options;
  options.task = {JobKind::kWorker, 2};
  options.job.job = "traced";
  options.job.traces = cluster::TracesSpec{{"127.0.0.1", port}, "/v1/traces", 1};
  return options;
}

// {sent, dropped}
std::pair<double, double> counted(const StepTraces& traces) {
  const std::vector<Metric> metrics = traces.metrics();
  EXPECT_EQ(metrics.size(), 1u);
  return {metrics.at(0).values.at(0).value, metrics.at(0).values.at(1).value};
}

void awaitCounted(const StepTraces& traces, double all) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  for (;;) {
    const auto [sent, dropped] = counted(traces);
    if (sent + dropped >= all) return;
    ASSERT_LT(std::chrono::steady_clock::now(), end) << sent << " " << dropped;
    std::this_thread::yield();
  }
}

TEST(StepTraces, AreSentToTheCollectorAsItsProtocolHasThem) {
  const HttpCollector collector(kTaken);
  const StepTraces traces(asking(collector.port()));
  trace::onStep(5);
  { const trace::Span span("compute"); }
  trace::onStep(6);
  awaitCounted(traces, 2);
  EXPECT_EQ(counted(traces), (std::pair<double, double>{2, 0}));
  auto spans = Json::array();  // of one request, unless the machine is slow
  for (const std::string& request : collector.requests()) {
    EXPECT_THAT(request, HasSubstr("POST /v1/traces HTTP/1.1\r\n"));
    const auto json = Json::parse(request.substr(request.find("\r\n\r\n") + 4));
    for (const auto& span : json["resourceSpans"][0]["scopeSpans"][0]["spans"])
      spans.push_back(span);
  }
  ASSERT_EQ(spans.size(), 2u);
  EXPECT_EQ(spans[0]["name"], "compute");
  EXPECT_EQ(spans[0]["parentSpanId"], spans[1]["spanId"]);
}

TEST(StepTraces, WhatIsLeftAtTheEndIsSent) {
  const HttpCollector collector(kTaken);
  {
    const StepTraces traces(asking(collector.port()));
    trace::onStep(5);
  }
  EXPECT_EQ(collector.requests().size(), 1u);
  EXPECT_FALSE(trace::recording());
}

TEST(StepTraces, WhatACollectorDoesNotTakeIsDroppedAndCounted) {
  for (const std::string& answer :
       {std::string("HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n"),
        std::string("HTTP/1.1 200 OK\r\n\r\n{\"partialSuccess\":{\"rejectedSpans\":\"1\"}}")}) {
    const HttpCollector collector(answer);
    const StepTraces traces(asking(collector.port()));
    trace::onStep(5);
    trace::onStep(6);
    awaitCounted(traces, 1);
    EXPECT_EQ(counted(traces), (std::pair<double, double>{0, 1}));
  }
}

// Training waits for no collector.
TEST(StepTraces, ACollectorThatNeverAnswersHoldsUpNoStepAndNoEnd) {
  const HttpCollector collector("");
  std::optional<StepTraces> traces(asking(collector.port()));
  constexpr uint64_t kSteps = 20'000;
  Duration longest{};
  for (uint64_t step = 1; step <= kSteps; ++step) {
    const TimePoint at = SystemClock().now();
    trace::onStep(step);
    longest = std::max<Duration>(longest, SystemClock().now() - at);
  }
  EXPECT_LT(longest, StepTraces::kPostWithin / 2);
  const double dropped = counted(*traces).second;
  EXPECT_GT(
      dropped,
      static_cast<double>(kSteps - 1 - StepTraces::kQueueMax - 2 * StepTraces::kBatchMax) - 1);
  EXPECT_EQ(counted(*traces).first, 0);
  const TimePoint begin = SystemClock().now();
  traces.reset();
  EXPECT_LT(SystemClock().now() - begin, StepTraces::kFlushWithin + std::chrono::seconds(3))
      << "one request after the other would take longer";
}

TEST(StepTraces, OfAJobThatAsksForNoneThereIsNothing) {
  const StepTraces traces(cluster::TaskOptions{});
  EXPECT_TRUE(traces.metrics().empty());
  trace::onStep(1);
  EXPECT_FALSE(trace::recording());
}

}  // namespace
}  // namespace dtf::daemons
