#pragma once

// Sampled spans (trace.h) in OpenTelemetry's protocol over HTTP, as JSON: the body of a POST
// /v1/traces (https://opentelemetry.io/docs/specs/otlp/). Pure.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "common/base/clock.h"
#include "common/base/ids.h"
#include "common/base/trace.h"

namespace dtf::trace {

// The process that recorded the spans.
struct OtlpResource {
  std::string job;
  TaskId task;
  std::string host;
  int64_t pid = 0;
};

// One moment on the monotonic clock and on the wall clock.
struct ClockAnchor {
  TimePoint monotonic{};
  int64_t unix_ns = 0;
  static ClockAnchor now();
};

std::string otlpJson(const OtlpResource& resource, std::span<const SampledSpan> spans,
                     const ClockAnchor& anchor);

// Returns the number of spans that a collector rejected, from its reply (`partialSuccess`).
uint64_t rejectedSpans(std::string_view answer);

}  // namespace dtf::trace
