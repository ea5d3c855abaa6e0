#include "common/base/otlp.h"

#include <charconv>

#include "common/base/json.h"

namespace dtf::trace {

namespace {

// Kinds of spans, as the protocol numbers them.
constexpr int kInternal = 1;
constexpr int kServer = 2;

// The protocol writes 64-bit numbers as strings in JSON.
Json attribute(const char* key, const std::string& text) {
  return {{"key", key}, {"value", {{"stringValue", text}}}};
}
Json attribute(const char* key, int64_t number) {
  return {{"key", key}, {"value", {{"intValue", std::to_string(number)}}}};
}

Json jsonOf(const SampledSpan& span, const ClockAnchor& anchor) {
  const auto unix = [&anchor](TimePoint time) {
    return std::to_string(anchor.unix_ns + (time - anchor.monotonic).count());
  };
  Json attributes = Json::array({attribute("dtf.step", static_cast<int64_t>(span.step))});
  if (!span.detail.empty()) attributes.push_back(attribute("dtf.peer", span.detail));
  Json json = {{"traceId", hexOf(span.self.trace)}, {"spanId", hexOf(span.self.span)}};
  if (span.parent != SpanId{}) json["parentSpanId"] = hexOf(span.parent);
  json["name"] = span.name;
  json["kind"] = span.is_parent_remote ? kServer : kInternal;
  json["startTimeUnixNano"] = unix(span.begin);
  json["endTimeUnixNano"] = unix(span.end);
  json["attributes"] = std::move(attributes);
  return json;
}

}  // namespace

ClockAnchor ClockAnchor::now() {
  const auto wall = std::chrono::system_clock::now().time_since_epoch();
  return {trace::now(), std::chrono::duration_cast<std::chrono::nanoseconds>(wall).count()};
}

std::string otlpJson(const OtlpResource& resource, std::span<const SampledSpan> spans,
                     const ClockAnchor& anchor) {
  Json all = Json::array();
  for (const SampledSpan& span : spans) all.push_back(jsonOf(span, anchor));
  const std::string service = resource.task.job == JobKind::kPs ? "psd" : "workerd";
  const Json attributes =
      Json::array({attribute("service.name", service), attribute("service.namespace", "dtf"),
                   attribute("service.instance.id", resource.task.name()),
                   attribute("service.version", DTF_VERSION), attribute("dtf.job", resource.job),
                   attribute("host.name", resource.host), attribute("process.pid", resource.pid)});
  const Json scope = {{"scope", {{"name", "dtf"}, {"version", DTF_VERSION}}},
                      {"spans", std::move(all)}};
  const Json of_resource = {{"resource", {{"attributes", attributes}}},
                            {"scopeSpans", Json::array({scope})}};
  return Json{{"resourceSpans", Json::array({of_resource})}}.dump();
}

uint64_t rejectedSpans(std::string_view answer) {
  const Json json = Json::parseOrNull(answer);
  const Json* const partial = json.find("partialSuccess");
  const Json* const rejected = partial != nullptr ? partial->find("rejectedSpans") : nullptr;
  if (rejected == nullptr) return 0;
  if (rejected->isUnsigned()) return rejected->asUint64();
  uint64_t number = 0;
  if (rejected->isString()) {
    const std::string& text = rejected->asString();
    std::from_chars(text.data(), text.data() + text.size(), number);
  }
  return number;
}

}  // namespace dtf::trace
