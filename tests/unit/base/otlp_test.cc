#include "common/base/otlp.h"
#include "common/base/json.h"

#include <gtest/gtest.h>

namespace dtf::trace {
namespace {

TEST(Otlp, SpansAreWhatTheProtocolHasInJson) {
  const TimePoint at{std::chrono::seconds(5)};
  SampledSpan root{"step", {}, SpanContext::newTrace(), {}, false, 300, at, at + Duration(1500)};
  SampledSpan child{
      "wait for the answer", "worker/1\xFF",  root.self.newChild(), root.self.span, true, 300,
      at + Duration(7),      at + Duration(8)};
  const std::vector<SampledSpan> spans = {root, child};
  const ClockAnchor anchor{TimePoint{std::chrono::seconds(4)}, 1'700'000'000'000'000'000};
  const Json sent =
      Json::parse(otlpJson({"mnist", {JobKind::kPs, 1}, "gpu7", 4242}, spans, anchor));
  ASSERT_EQ(sent["resourceSpans"].size(), 1u);
  const Json& of_resource = sent["resourceSpans"][0];
  std::map<std::string, Json> attributes;
  for (const Json& each : of_resource["resource"]["attributes"])
    attributes[each.stringAt("key")] = each["value"];
  EXPECT_EQ(attributes["service.name"], (Json{{"stringValue", "psd"}}));
  EXPECT_EQ(attributes["service.instance.id"], (Json{{"stringValue", "ps/1"}}));
  EXPECT_EQ(attributes["dtf.job"], (Json{{"stringValue", "mnist"}}));
  EXPECT_EQ(attributes["host.name"], (Json{{"stringValue", "gpu7"}}));
  EXPECT_EQ(attributes["process.pid"], (Json{{"intValue", "4242"}}));
  const Json& scope = of_resource["scopeSpans"][0];
  EXPECT_EQ(scope["scope"]["name"], "dtf");
  ASSERT_EQ(scope["spans"].size(), 2u);
  const Json& first = scope["spans"][0];
  EXPECT_EQ(first["traceId"], hexOf(root.self.trace));
  EXPECT_EQ(first["spanId"], hexOf(root.self.span));
  EXPECT_FALSE(first.contains("parentSpanId"));
  EXPECT_EQ(first["name"], "step");
  EXPECT_EQ(first["kind"], 1);
  EXPECT_EQ(first["startTimeUnixNano"], "1700000001000000000");
  EXPECT_EQ(first["endTimeUnixNano"], "1700000001000001500");
  EXPECT_EQ(first["attributes"][0], (Json{{"key", "dtf.step"}, {"value", {{"intValue", "300"}}}}));
  const Json& second = scope["spans"][1];
  EXPECT_EQ(second["parentSpanId"], hexOf(root.self.span));
  EXPECT_EQ(second["kind"], 2) << "a server's";
  EXPECT_EQ(second["attributes"][1]["key"], "dtf.peer");
}

TEST(Otlp, TheAnchorIsNow) {
  const ClockAnchor anchor = ClockAnchor::now();
  EXPECT_GT(anchor.unix_ns, int64_t{1'600'000'000} * 1'000'000'000);
  EXPECT_LE(anchor.monotonic, now());
}

TEST(Otlp, WhatACollectorHasNotTakenIsCounted) {
  EXPECT_EQ(rejectedSpans("{}"), 0u);
  EXPECT_EQ(rejectedSpans(R"({"partialSuccess":{}})"), 0u);
  EXPECT_EQ(rejectedSpans(R"({"partialSuccess":{"rejectedSpans":"3","errorMessage":"no"}})"), 3u);
  EXPECT_EQ(rejectedSpans(R"({"partialSuccess":{"rejectedSpans":4}})"), 4u);
  for (const char* junk : {"", "null", "[]", "<html>", R"({"partialSuccess":7})",
                           R"({"partialSuccess":{"rejectedSpans":[]}})"})
    EXPECT_EQ(rejectedSpans(junk), 0u) << junk;
}

}  // namespace
}  // namespace dtf::trace
