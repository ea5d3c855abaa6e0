#include "common/base/trace.h"

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/base/file.h"
#include "common/base/log.h"
#include "common/base/mutex.h"

namespace dtf::trace {

namespace {

using Json = nlohmann::ordered_json;

// Tasks in the order of every list: ps first. A pid that is 0 is the kernel's.
constexpr int kFirstPs = 1;
constexpr int kFirstWorker = 100'001;

struct Event {
  const char* name;  // nullptr: of an operation, whose name is in `detail`
  std::string detail;
  TimePoint begin;
  TimePoint end;
  pid_t thread;
};

struct Recorder {
  std::atomic<bool> recording{false};
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
  static auto* const instance = new Recorder;  // threads may outlive main()'s statics
  return *instance;
}

// What onStep() looks at first, without the lock: 0 is no step that can be wanted.
std::atomic<uint64_t> wanted_step{0};

double microseconds(Duration duration) {
  return static_cast<double>(duration.count()) / 1e3;
}

std::string threadName() {
  char name[32] = {};
  ::pthread_getname_np(::pthread_self(), name, sizeof name);
  return name;
}

int pidOf(TaskId task) {
  return static_cast<int>(task.index) + (task.job == JobKind::kPs ? kFirstPs : kFirstWorker);
}

Json metadata(const char* what, int pid, const char* key, const Json& value) {
  return {{"ph", "M"}, {"name", what}, {"pid", pid}, {"tid", 0}, {"args", {{key, value}}}};
}

}  // namespace

void start(TaskId task, uint64_t step) {
  DTF_CHECK(step > 0);  // 0 is "none wanted"
  Recorder& state = recorder();
  MutexLock lock(state.mutex);
  state.recording = false;
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
  state.recording = false;
  state.started = false;
  wanted_step = 0;
}

void onStep(uint64_t step) {
  const uint64_t wanted = wanted_step.load(std::memory_order_relaxed);
  if (wanted == 0 || step < wanted) return;
  Recorder& state = recorder();
  MutexLock lock(state.mutex);
  if (step == state.step && state.started && !state.over) {
    state.recording = true;
    return;
  }
  state.recording = false;
  state.over = true;
  wanted_step = 0;
}

bool recording() {
  return recorder().recording.load(std::memory_order_relaxed);
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
  record(nullptr, begin, end, std::move(name));
}

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
  const Json anchor = {
      {"monotonic_us", microseconds(now().time_since_epoch())},
      {"unix_us", std::chrono::duration_cast<std::chrono::microseconds>(wall).count()}};
  return Json{{"traceEvents", std::move(events)},
              {"otherData",
               {{"task", state.task.name()},
                {"step", state.step},
                {"spans_dropped", state.dropped},
                {"clock_anchor", anchor}}}}
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
    if (state.events.empty())
      log::warning("event=timeline_empty reason=\"step {} was not reached by this task\"",
                   state.step);
    task = state.task;
  }
  try {
    makeWritableFolder(folder);
    atomicReplace(folder / fileName(task), json());
  } catch (const Error& error) {
    log::warning("event=timeline_failed reason=\"{}\"", error.message());
  }
}

}  // namespace dtf::trace
