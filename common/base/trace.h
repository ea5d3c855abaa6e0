#pragma once

// Spans of all threads of this process during some training steps, on CLOCK_MONOTONIC, which all
// processes of a host share:
//   start()   records one step, for a timeline of all tasks as Chrome trace JSON;
//   sample()  records every Nth step, and passes each span to a sink as it ends, with its parent in
//             this process or another (trace_context.h).
// Off unless one of them is called; a call then costs two relaxed loads outside of such a step.

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

// Starts recording at step `step`. Discards earlier records. Call it before threads that record
// exist.
void start(TaskId task, uint64_t step);
void stop();  // stops recording; save() then does nothing

// Enters `step`: recording begins at the wanted step and ends for good at any later one.
// Thread-safe.
void onStep(uint64_t step);

bool recording();  // whether spans are recorded, for either purpose
// Returns whether ops of graphs are recorded: for a timeline, or for a session's step on this
// thread (step_trace.h).
bool recordingOps();

// Records a span for the timeline alone. `name` is a literal; `detail` names its subject and may be
// empty. Thread-safe.
void add(const char* name, TimePoint begin, TimePoint end, std::string detail = {});

// Records an operation of the model's graph under its own name: "Conv2D conv1/Conv2D". Thread-safe.
void addOp(std::string name, TimePoint begin, TimePoint end);

// ---- sample()

struct SampledSpan {
  const char* name = "";
  std::string detail;
  SpanContext self;
  SpanId parent;                  // all zero: no parent
  bool is_parent_remote = false;  // the parent belongs to another process
  uint64_t step = 0;
  TimePoint begin{}, end{};
};
// Called by the thread that ends a span. It must not block.
using SpanSink = std::function<void(SampledSpan&& span)>;

// Starts sampling. On a worker, steps whose number `every_steps` divides become root spans, "step".
// Where a shard is hosted, requests of sampled steps are recorded (onRequest()). Call it before
// threads that record exist.
void sample(TaskId task, uint64_t every_steps, SpanSink sink);
// Stops sampling, also within a step. Spans that begin after it don't reach `sink`.
void stopSampling();

// Ends the step begun by onStep() when no other follows. Thread-safe.
void endStep();

// Begins a worker's request with its traceparent. Spans from now on belong to it, or to nothing if
// it has no traceparent: on a ps all spans, on a worker that hosts a shard those of this thread.
// Thread-safe.
void onRequest(uint64_t step, std::string_view traceparent);

// Returns the traceparent for a request to another process; empty if nothing is sampled now.
std::string traceparentHere();

// A span that ends in another place than it begins: `begun = begin()`, later `end("apply", begun)`.
struct Begun {
  TimePoint at{};  // zero: not recorded
  bool is_for_timeline = false;
  SpanContext self;    // of a sampled span
  SpanContext parent;  // likewise; invalid if not sampled
  bool is_parent_remote = false;
  uint64_t step = 0;

  bool recorded() const { return at != TimePoint{}; }
};
// On the calling thread. Thread-safe.
Begun begin();
void end(const char* name, const Begun& begun, std::string detail = {});

// The position of a thread in the tree of spans, for spans that begin there.
struct Here {
  SpanContext parent;      // invalid: the root of the step or request is the parent
  bool is_remote = false;  // the parent belongs to another process
};

// Returns a sibling of `before` that begins now: work that goes on after a wait, during which other
// work may have begun.
// Thread-safe.
Begun beside(const Begun& before);

// Reads CLOCK_MONOTONIC.
TimePoint now();

// A span from construction to destruction. Sampled spans that begin meanwhile on this thread are
// its children.
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
  Here outer_;  // the thread's previous position
};

// Returns the trace so far: {"traceEvents": [...], "otherData": {...}} for ui.perfetto.dev and
// chrome://tracing. pid is the task, tid the thread; otherData holds the wall clock at one moment,
// and the task.
std::string json();

// "worker-1.json" for worker/1.
std::string fileName(TaskId task);

// Writes `folder`/fileName(task) if start() was called. Never throws: logs a warning if the file
// can't be written.
void save(const std::filesystem::path& folder);

}  // namespace dtf::trace
