#include "common/base/trace_context.h"

#include <sys/random.h>

#include "common/base/check.h"

namespace dtf::trace {

namespace {

constexpr size_t kTraceAt = 3, kSpanAt = 36, kFlagsAt = 53, kBytes = 55;
constexpr uint8_t kSampled = 1;

// Never all zero, which means none.
template <class Id>
Id newId() {
  Id id{};
  while (id == Id{}) DTF_CHECK(::getrandom(id.data(), id.size(), 0) == ssize_t(id.size()));
  return id;
}

template <class Id>
std::string hexText(const Id& id) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const uint8_t byte : id) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

// Accepts lower case only, as W3C requires.
std::optional<uint8_t> digitOf(char c) {
  if (c >= '0' && c <= '9') return static_cast<uint8_t>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<uint8_t>(c - 'a' + 10);
  return std::nullopt;
}

template <class Id>
bool readHex(std::string_view text, Id& id) {
  for (size_t i = 0; i < id.size(); ++i) {
    const auto high = digitOf(text[2 * i]), low = digitOf(text[2 * i + 1]);
    if (!high || !low) return false;
    id[i] = static_cast<uint8_t>(*high << 4 | *low);
  }
  return true;
}

}  // namespace

SpanContext SpanContext::newTrace() {
  return {newId<TraceId>(), newId<SpanId>()};
}

SpanContext SpanContext::newChild() const {
  return {trace, newId<SpanId>()};
}

std::string hexOf(const TraceId& id) {
  return hexText(id);
}

std::string hexOf(const SpanId& id) {
  return hexText(id);
}

std::string traceparentOf(const SpanContext& context) {
  return "00-" + hexText(context.trace) + "-" + hexText(context.span) + "-01";
}

std::optional<SpanContext> parseTraceparent(std::string_view text) {
  std::array<uint8_t, 1> version{}, flags{};
  SpanContext context;
  if (text.size() < kBytes || text[kTraceAt - 1] != '-' || text[kSpanAt - 1] != '-' ||
      text[kFlagsAt - 1] != '-')
    return std::nullopt;
  if (!readHex(text, version) || !readHex(text.substr(kTraceAt), context.trace) ||
      !readHex(text.substr(kSpanAt), context.span) || !readHex(text.substr(kFlagsAt), flags))
    return std::nullopt;
  const bool is_later = version[0] != 0;
  const bool fits = is_later ? text.size() == kBytes || text[kBytes] == '-' : text.size() == kBytes;
  constexpr uint8_t kNoVersion = 0xFF;
  if (version[0] == kNoVersion || !fits || (flags[0] & kSampled) == 0 || !context.valid())
    return std::nullopt;
  return context;
}

}  // namespace dtf::trace
