#pragma once

// Which span of which trace something belongs to, over the borders of processes: W3C's trace
// context (https://www.w3.org/TR/trace-context/).

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

  static SpanContext newTrace();  // the root of one that nobody else has
  SpanContext newChild() const;   // another span of the same trace
};

std::string hexOf(const TraceId& id);
std::string hexOf(const SpanId& id);

// "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", which says that it is sampled.
std::string traceparentOf(const SpanContext& context);

// Nullopt: it can't be read, or says that the trace isn't sampled. A later version of the format is
// read as far as this one goes, as W3C wants it.
std::optional<SpanContext> parseTraceparent(std::string_view text);

}  // namespace dtf::trace
