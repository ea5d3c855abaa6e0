#include "common/base/trace.h"

#include <unistd.h>

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/base/chrome_trace.h"
#include "common/base/error.h"
#include "common/base/file.h"
#include "common/base/json.h"
#include "common/base/log.h"
#include "common/base/mutex.h"
#include "common/base/step_trace.h"
#include "common/base/thread.h"

namespace dtf::trace {

namespace {

struct Event {
  const char* name;  // nullptr: an operation, whose name is in `detail`
  std::string detail;
  TimePoint begin;
  TimePoint end;
  pid_t thread;
};

// The consumers of spans.
constexpr uint32_t kTimeline = 1;
constexpr uint32_t kSamples = 2;
constexpr uint32_t kServed = 4;  // samples of requests to a worker's shard
std::atomic<uint32_t> recording_for{0};

void wantFor(uint32_t who, bool wanted) {
  if (wanted)
    recording_for |= who;
  else
    recording_for &= ~who;
}

struct Recorder {
  Mutex mutex;
  bool started DTF_GUARDED_BY(mutex) = false;
  bool over DTF_GUARDED_BY(mutex) = false;
  TaskId task DTF_GUARDED_BY(mutex);
  uint64_t step DTF_GUARDED_BY(mutex) = 0;
  std::vector<Event> events DTF_GUARDED_BY(mutex);
  uint64_t dropped DTF_GUARDED_BY(mutex) = 0;
  std::map<pid_t, std::string> threads DTF_GUARDED_BY(mutex);
};

Recorder& recorder() {
  static auto* const instance = new Recorder;  // leaked: threads may outlive main()'s statics
  return *instance;
}

// onStep() checks it first, without the lock; 0 matches no step.
std::atomic<uint64_t> wanted_step{0};

}  // namespace

void start(TaskId task, uint64_t step) {
  DTF_CHECK(step > 0);  // 0 is "none wanted"
  Recorder& state = recorder();
  MutexLock lock(state.mutex);
  wantFor(kTimeline, false);
  state.started = true;
  state.over = false;
  state.task = task;
  state.step = step;
  state.events.clear();
  state.events.reserve(kSpansMax);
  state.dropped = 0;
  state.threads.clear();
  wanted_step = step;
}

void stop() {
  Recorder& state = recorder();
  MutexLock lock(state.mutex);
  wantFor(kTimeline, false);
  state.started = false;
  wanted_step = 0;
}

namespace {
void sampleStep(uint64_t step);
std::atomic<bool> samples_steps{false};
}  // namespace

void onStep(uint64_t step) {
  if (samples_steps.load(std::memory_order_relaxed)) sampleStep(step);
  const uint64_t wanted = wanted_step.load(std::memory_order_relaxed);
  if (wanted == 0 || step < wanted) return;
  Recorder& state = recorder();
  MutexLock lock(state.mutex);
  if (step == state.step && state.started && !state.over) {
    wantFor(kTimeline, true);
    return;
  }
  wantFor(kTimeline, false);
  state.over = true;
  wanted_step = 0;
}

bool recording() {
  return recording_for.load(std::memory_order_relaxed) != 0;
}

bool recordingOps() {
  return (recording_for.load(std::memory_order_relaxed) & kTimeline) != 0 ||
         StepTrace::here() != nullptr;
}

TimePoint now() {
  return SystemClock().now();
}

namespace {

void record(const char* name, TimePoint begin, TimePoint end, std::string detail) {
  DTF_CHECK(begin <= end);
  Recorder& state = recorder();
  const pid_t thread = ::gettid();
  MutexLock lock(state.mutex);
  if (state.events.size() >= kSpansMax) {
    ++state.dropped;
    return;
  }
  if (!state.threads.contains(thread)) state.threads[thread] = threadName();
  state.events.push_back({name, std::move(detail), begin, end, thread});
}

}  // namespace

void add(const char* name, TimePoint begin, TimePoint end, std::string detail) {
  DTF_CHECK(name != nullptr);
  record(name, begin, end, std::move(detail));
}

void addOp(std::string name, TimePoint begin, TimePoint end) {
  DTF_CHECK(!name.empty());
  if (StepTrace* const step = StepTrace::here()) {
    step->addOp(name, begin, end);
    if ((recording_for.load(std::memory_order_relaxed) & kTimeline) == 0) return;
  }
  record(nullptr, begin, end, std::move(name));
}

// ---- sample()

namespace {

struct Sampler {
  Mutex mutex;
  TaskId task DTF_GUARDED_BY(mutex);
  uint64_t every DTF_GUARDED_BY(mutex) = 0;
  std::shared_ptr<const SpanSink> sink DTF_GUARDED_BY(mutex);  // null: no sampling
  // The current root: a step of this worker, or a request of another process.
  SpanContext root DTF_GUARDED_BY(mutex);
  TimePoint begin DTF_GUARDED_BY(mutex);
  uint64_t step DTF_GUARDED_BY(mutex) = 0;
};

Sampler& sampler() {
  static auto* const instance = new Sampler;  // leaked, like recorder()
  return *instance;
}

std::atomic<bool> samples_requests{false};
thread_local Here here;

// The request that this thread of a worker serves: another root than the step that the worker's
// other threads compute meanwhile. A ps has no steps of its own, so its root is a request.
struct Served {
  bool any = false;
  SpanContext root;  // invalid: the request is not sampled
  uint64_t step = 0;
};
thread_local Served served;

// Ends the root and returns its span if it is this worker's own. Later spans have no root.
std::optional<SampledSpan> endRoot(Sampler& state) DTF_REQUIRES(state.mutex) {
  wantFor(kSamples, false);
  const SpanContext root = std::exchange(state.root, {});
  if (!root.valid() || state.task.job == JobKind::kPs) return std::nullopt;
  return SampledSpan{"step", {}, root, {}, false, state.step, state.begin, now()};
}

void give(const std::shared_ptr<const SpanSink>& sink, std::optional<SampledSpan> span) {
  if (sink != nullptr && span) (*sink)(std::move(*span));
}

void sampleStep(uint64_t step) {
  Sampler& state = sampler();
  std::optional<SampledSpan> before;
  std::shared_ptr<const SpanSink> sink;
  {
    MutexLock lock(state.mutex);
    sink = state.sink;
    if (sink == nullptr || (state.root.valid() && state.step == step)) return;
    before = endRoot(state);
    if (step % state.every == 0) {
      state.root = SpanContext::newTrace();
      state.step = step;
      state.begin = now();
      wantFor(kSamples, true);
    }
  }
  give(sink, std::move(before));
}

}  // namespace

void sample(TaskId task, uint64_t every_steps, SpanSink sink) {
  DTF_CHECK(every_steps > 0 && sink);
  Sampler& state = sampler();
  MutexLock lock(state.mutex);
  state.task = task;
  state.every = every_steps;
  state.sink = std::make_shared<const SpanSink>(std::move(sink));
  state.root = {};
  samples_steps = task.job == JobKind::kWorker;
  samples_requests = true;
}

void stopSampling() {
  endStep();
  samples_steps = false;
  samples_requests = false;
  Sampler& state = sampler();
  MutexLock lock(state.mutex);
  wantFor(kSamples | kServed, false);
  state.sink = nullptr;
  state.root = {};
}

void endStep() {
  if (!samples_steps) return;
  Sampler& state = sampler();
  std::optional<SampledSpan> span;
  std::shared_ptr<const SpanSink> sink;
  {
    MutexLock lock(state.mutex);
    sink = state.sink;
    span = endRoot(state);
  }
  give(sink, std::move(span));
}

void onRequest(uint64_t step, std::string_view traceparent) {
  if (!samples_requests.load(std::memory_order_relaxed)) return;
  const std::optional<SpanContext> context = parseTraceparent(traceparent);
  Sampler& state = sampler();
  MutexLock lock(state.mutex);
  const bool is_sampled = context.has_value() && state.sink != nullptr;
  if (state.task.job == JobKind::kWorker) {
    served = {true, context.value_or(SpanContext{}), step};
    return wantFor(kServed, is_sampled);
  }
  state.root = context.value_or(SpanContext{});
  state.step = step;
  wantFor(kSamples, is_sampled);
}

std::string traceparentHere() {
  if ((recording_for.load(std::memory_order_relaxed) & kSamples) == 0) return {};
  if (here.parent.valid()) return traceparentOf(here.parent);
  Sampler& state = sampler();
  MutexLock lock(state.mutex);
  return state.root.valid() ? traceparentOf(state.root) : std::string();
}

Begun begin() {
  const uint32_t who = recording_for.load(std::memory_order_relaxed);
  if (who == 0) return {};
  Begun begun;
  begun.is_for_timeline = (who & kTimeline) != 0;
  if ((who & (kSamples | kServed)) != 0) {
    Sampler& state = sampler();
    MutexLock lock(state.mutex);
    const bool is_remote = served.any || state.task.job == JobKind::kPs;
    const Here of_root{served.any ? served.root : state.root, is_remote};
    const Here& parent = here.parent.valid() ? here : of_root;
    begun.parent = parent.parent;
    begun.is_parent_remote = parent.is_remote;
    begun.step = served.any ? served.step : state.step;
    if (begun.parent.valid()) begun.self = begun.parent.newChild();
  }
  begun.at = now();
  return begun;
}

void end(const char* name, const Begun& begun, std::string detail) {
  if (!begun.recorded()) return;
  const TimePoint at = now();
  if (begun.is_for_timeline) add(name, begun.at, at, detail);
  if (!begun.parent.valid()) return;
  Sampler& state = sampler();
  std::shared_ptr<const SpanSink> sink;
  {
    MutexLock lock(state.mutex);
    sink = state.sink;
  }
  give(sink, SampledSpan{name, std::move(detail), begun.self, begun.parent.span,
                         begun.is_parent_remote, begun.step, begun.at, at});
}

Begun beside(const Begun& before) {
  if (!before.recorded()) return {};
  Begun begun = before;
  begun.is_for_timeline = before.is_for_timeline && recordingOps();
  if (begun.parent.valid()) begun.self = begun.parent.newChild();
  begun.at = now();
  return begun;
}

void Span::enter() {
  begun_ = begin();
  outer_ = here;
  if (begun_.parent.valid()) here = {begun_.self, false};
}

void Span::leave() {
  here = outer_;
  // A timeline that has ended takes no more spans.
  begun_.is_for_timeline = begun_.is_for_timeline && recordingOps();
  end(name_, begun_);
}

// ---- the timeline

std::string json() {
  Recorder& state = recorder();
  MutexLock lock(state.mutex);
  const int pid = pidOf(state.task);
  Json events = Json::array();
  events.push_back(metadata("process_name", pid, "name", state.task.name()));
  events.push_back(metadata("process_sort_index", pid, "sort_index", pid));
  for (const auto& [thread, name] : state.threads) {
    events.push_back(metadata("thread_name", pid, "name", name));
    events.back()["tid"] = thread;
  }
  for (const Event& event : state.events) {
    const bool is_op = event.name == nullptr;
    Json args = {{"step", state.step}};
    if (!is_op && !event.detail.empty()) args["detail"] = event.detail;
    events.push_back({{"ph", "X"},
                      {"cat", is_op                            ? "op"
                              : state.task.job == JobKind::kPs ? "ps"
                                                               : "worker"},
                      {"name", is_op ? event.detail : std::string(event.name)},
                      {"pid", pid},
                      {"tid", event.thread},
                      {"ts", microseconds(event.begin.time_since_epoch())},
                      {"dur", microseconds(event.end - event.begin)},
                      {"args", std::move(args)}});
  }
  const auto wall = std::chrono::system_clock::now().time_since_epoch();
  const int64_t unix_us = std::chrono::duration_cast<std::chrono::microseconds>(wall).count();
  return Json{{"traceEvents", std::move(events)},
              {"otherData",
               {{"task", state.task.name()},
                {"step", state.step},
                {"spans_dropped", state.dropped},
                {"clock_anchor", clockAnchor(now(), unix_us)}}}}
             .dump() +
         "\n";
}

std::string fileName(TaskId task) {
  return std::string(jobName(task.job)) + "-" + std::to_string(task.index) + ".json";
}

void save(const std::filesystem::path& folder) {
  Recorder& state = recorder();
  TaskId task;
  {
    MutexLock lock(state.mutex);
    if (!state.started) return;
    task = state.task;
    if (state.events.empty()) {
      // A job that resumed beyond that step: the earlier timeline is still valid.
      std::error_code ignored;
      if (std::filesystem::exists(folder / fileName(task), ignored)) {
        log::info("event=timeline_kept reason=\"step {} was not reached by this task\"",
                  state.step);
        return;
      }
      log::warning("event=timeline_empty reason=\"step {} was not reached by this task\"",
                   state.step);
    }
  }
  try {
    makeWritableFolder(folder);
    atomicReplace(folder / fileName(task), json());
  } catch (const Error& error) {
    log::warning("event=timeline_failed reason=\"{}\"", error.message());
  }
}

}  // namespace dtf::trace
