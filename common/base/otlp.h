#pragma once

// Sampled spans (trace.h) as OpenTelemetry's protocol has them over HTTP, in JSON: the body of a
// POST /v1/traces (https://opentelemetry.io/docs/specs/otlp/). Pure.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "common/base/clock.h"
#include "common/base/ids.h"
#include "common/base/trace.h"

namespace dtf::trace {

// Whose spans they are.
struct OtlpResource {
  std::string job;
  TaskId task;
  std::string host;
  int64_t pid = 0;
};

// The wall clock at a moment of the monotonic one.
struct ClockAnchor {
  TimePoint monotonic{};
  int64_t unix_ns = 0;
  static ClockAnchor now();
};

std::string otlpJson(const OtlpResource& resource, std::span<const SampledSpan> spans,
                     const ClockAnchor& anchor);

// How many of the spans a collector has not taken, as it says in its answer to them: a
// `partialSuccess`.
uint64_t rejectedSpans(std::string_view answer);

}  // namespace dtf::trace
