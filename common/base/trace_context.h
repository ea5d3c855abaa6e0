#pragma once

// The identity of a span across processes: W3C's trace context
// (https://www.w3.org/TR/trace-context/).

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace dtf::trace {

using TraceId = std::array<uint8_t, 16>;
using SpanId = std::array<uint8_t, 8>;

// Value type.
struct SpanContext {
  TraceId trace{};
  SpanId span{};

  bool valid() const { return trace != TraceId{} && span != SpanId{}; }
  bool operator==(const SpanContext&) const = default;

  static SpanContext newTrace();  // the root of a new trace
  SpanContext newChild() const;   // another span of the same trace
};

std::string hexOf(const TraceId& id);
std::string hexOf(const SpanId& id);

// Returns "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", with the flag `sampled`.
std::string traceparentOf(const SpanContext& context);

// Returns nullopt if the text can't be read or its trace isn't sampled. Fields of later versions of
// the format are ignored, as W3C requires.
std::optional<SpanContext> parseTraceparent(std::string_view text);

}  // namespace dtf::trace
