#pragma once

// What every thread of this process did during some steps of the training, as spans on
// CLOCK_MONOTONIC, which all processes of a host share:
//   start()   of one step, for a timeline of all tasks, as Chrome trace JSON;
//   sample()  of every Nth step, each span given to somebody as it ends, with who its parent is, in
//             this process or another (trace_context.h).
// Off unless one of them is called; then it costs two relaxed loads outside of such a step.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "common/base/clock.h"
#include "common/base/ids.h"
#include "common/base/trace_context.h"

namespace dtf::trace {

// Spans beyond this many are dropped and counted in the file.
inline constexpr size_t kSpansMax = 4096;

// From now on step `step` is recorded. Forgets what was recorded before. Call it before threads
// that record exist.
void start(TaskId task, uint64_t step);
void stop();  // nothing is recorded any more, and save() does nothing

// This process is at `step`: recording begins at the wanted one and ends for good at one beyond it.
// Thread-safe.
void onStep(uint64_t step);

bool recording();  // spans, for either
// Those of the model's graph, for a timeline, or of a session's step that this thread is at
// (step_trace.h).
bool recordingOps();

// `name` is a literal; `detail`, who or what it was about, may be empty. For the timeline alone.
// Thread-safe.
void add(const char* name, TimePoint begin, TimePoint end, std::string detail = {});

// An operation of the model's graph, shown by its own name: "Conv2D conv1/Conv2D". Thread-safe.
void addOp(std::string name, TimePoint begin, TimePoint end);

// ---- sample()

struct SampledSpan {
  const char* name = "";
  std::string detail;
  SpanContext self;
  SpanId parent;                  // all zero: there is none
  bool is_parent_remote = false;  // it is of another process
  uint64_t step = 0;
  TimePoint begin{}, end{};
};
// Called by whatever thread has ended a span. It must not block.
using SpanSink = std::function<void(SampledSpan&& span)>;

// Of a worker: from now on steps whose number `every_steps` divides are roots, "step", of all that
// happens in them. Of a ps: what others ask of it, while onRequest() says so. Call it before
// threads that record exist.
void sample(TaskId task, uint64_t every_steps, SpanSink sink);
// Ends a step that is under way. `sink` is not called any more by whoever asks for a span from now
// on.
void stopSampling();

// The step that onStep() has begun is over, and no other follows. Thread-safe.
void endStep();

// Of a ps: a worker's request, with its traceparent where it has one. What happens from now on is
// its; without one, nobody's. Thread-safe.
void onRequest(uint64_t step, std::string_view traceparent);

// For a request to another process: its traceparent. Empty: nothing is sampled now.
std::string traceparentHere();

// A span that ends elsewhere than it begins: `begun = begin()`, later `end("apply", begun)`.
struct Begun {
  TimePoint at{};  // zero: nothing is recorded
  bool is_for_timeline = false;
  SpanContext self;    // of a sampled one
  SpanContext parent;  // likewise; not valid: it isn't sampled
  bool is_parent_remote = false;
  uint64_t step = 0;

  bool recorded() const { return at != TimePoint{}; }
};
// On the calling thread. Thread-safe.
Begun begin();
void end(const char* name, const Begun& begun, std::string detail = {});

// What a thread is at, for the spans that begin there.
struct Here {
  SpanContext parent;      // not valid: the step's, or the request's
  bool is_remote = false;  // it is of another process
};

// Another span beside `before`, that begins now: the work goes on after a wait, in which others may
// have had theirs. Thread-safe.
Begun beside(const Begun& before);

// CLOCK_MONOTONIC.
TimePoint now();

// From its construction to its end; sampled ones that begin meanwhile on this thread are its
// children.
class Span {
 public:
  explicit Span(const char* name) : name_(name), is_recorded_(recording()) {
    if (is_recorded_) enter();
  }
  ~Span() {
    if (is_recorded_) leave();
  }
  Span(const Span&) = delete;
  Span& operator=(const Span&) = delete;

 private:
  void enter();
  void leave();

  const char* const name_;
  const bool is_recorded_;
  Begun begun_;
  Here outer_;  // of this thread before
};

// The trace so far: {"traceEvents": [...], "otherData": {...}} for ui.perfetto.dev and
// chrome://tracing. pid stands for the task, tid for the thread; otherData has the wall clock of
// one moment, and the task.
std::string json();

// "worker-1.json" for worker/1.
std::string fileName(TaskId task);

// Writes `folder`/fileName(task) when start() was called. Never throws: a timeline that can't be
// written is a warning.
void save(const std::filesystem::path& folder);

}  // namespace dtf::trace
