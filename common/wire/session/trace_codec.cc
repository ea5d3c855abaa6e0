#include "common/wire/session/trace_codec.h"

#include <fmt/format.h>

#include <string>

#include "common/base/error.h"

namespace dtf::wire {

namespace {

// The bound of a time: half of the largest number, so that differences fit, too.
constexpr int64_t kTimeMaxNs = INT64_MAX / 2;
constexpr uint32_t kTracksMax = 1024;
constexpr size_t kTrackBytesMax = 32 * kTracksMax;

int64_t nanoseconds(TimePoint time) {
  return time.time_since_epoch().count();
}

// Reads the trace in one task's reply.
// Borrows: the arguments of its constructor.
class TraceReader {
 public:
  TraceReader(TaskId task, schema::PartTrace::Reader reader) : task_(task), reader_(reader) {}

  trace::TaskTrace read() {
    trace::TaskTrace trace{.task = task_};
    trace.begin = time(reader_.getBeginNs(), 0);
    trace.end = time(reader_.getEndNs(), reader_.getBeginNs());
    trace.anchor = time(reader_.getAnchorNs(), 0);
    trace.unix_us = reader_.getAnchorUnixUs();
    trace.dropped = reader_.getDropped();
    const auto tracks = reader_.getTracks();
    const auto spans = reader_.getSpans();
    if (tracks.size() > kTracksMax || spans.size() > trace::kStepSpansMax)
      refuse(fmt::format("has {} spans in {} tracks", spans.size(), tracks.size()));
    for (const auto track : tracks) trace.tracks.push_back(text(track));
    for (const auto span : spans) {
      if (span.getTrack() >= tracks.size())
        refuse(fmt::format("has a span in track {} of {}", span.getTrack(), tracks.size()));
      if (span.getKind() >= trace::kStepSpanKinds.size()) continue;  // of a later version
      trace.spans.push_back({.kind = static_cast<trace::StepSpan::Kind>(span.getKind()),
                             .name = text(span.getName()),
                             .detail = text(span.getDetail()),
                             .track = span.getTrack(),
                             .begin = time(span.getBeginNs(), 0),
                             .end = time(span.getEndNs(), span.getBeginNs())});
    }
    return trace;
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    throw Error(ErrorCode::kInternal, task_.name() + "'s trace of a step " + what);
  }

  TimePoint time(int64_t ns, int64_t not_before) const {
    if (ns < not_before || ns > kTimeMaxNs) refuse(fmt::format("has the time {} ns", ns));
    return TimePoint(Duration(ns));
  }

  std::string text(capnp::Text::Reader text) {
    text_bytes_ += text.size();
    if (text_bytes_ > trace::kStepTextBytesMax + kTrackBytesMax)
      refuse(fmt::format("has more than {} bytes of text", trace::kStepTextBytesMax));
    return {text.begin(), text.size()};
  }

  const TaskId task_;
  const schema::PartTrace::Reader reader_;
  size_t text_bytes_ = 0;
};

}  // namespace

void encodeTrace(const trace::TaskTrace& trace, schema::PartTrace::Builder builder) {
  builder.setBeginNs(nanoseconds(trace.begin));
  builder.setEndNs(nanoseconds(trace.end));
  builder.setAnchorNs(nanoseconds(trace.anchor));
  builder.setAnchorUnixUs(trace.unix_us);
  builder.setDropped(trace.dropped);
  auto tracks = builder.initTracks(static_cast<uint32_t>(trace.tracks.size()));
  for (uint32_t i = 0; i < tracks.size(); ++i) tracks.set(i, trace.tracks[i]);
  auto spans = builder.initSpans(static_cast<uint32_t>(trace.spans.size()));
  for (uint32_t i = 0; i < spans.size(); ++i) {
    const trace::StepSpan& span = trace.spans[i];
    spans[i].setKind(static_cast<uint8_t>(span.kind));
    spans[i].setTrack(static_cast<uint16_t>(span.track));
    spans[i].setName(span.name);
    if (!span.detail.empty()) spans[i].setDetail(span.detail);
    spans[i].setBeginNs(nanoseconds(span.begin));
    spans[i].setEndNs(nanoseconds(span.end));
  }
}

trace::TaskTrace decodeTrace(TaskId task, bool is_given, schema::PartTrace::Reader reader) {
  if (!is_given) return {.task = task, .is_given = false};
  return TraceReader(task, reader).read();
}

}  // namespace dtf::wire
