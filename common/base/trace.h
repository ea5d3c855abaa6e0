#pragma once

// What every thread of this process did during one step of the training, for a timeline of all
// tasks: spans on CLOCK_MONOTONIC, which all processes of a host share, as Chrome trace JSON. Off
// unless start() is called; then it costs one relaxed load a span outside of the wanted step.

#include <cstdint>
#include <filesystem>
#include <string>

#include "common/base/clock.h"
#include "common/base/ids.h"

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

bool recording();

// `name` is a literal; `detail`, who or what it was about, may be empty. Thread-safe.
void add(const char* name, TimePoint begin, TimePoint end, std::string detail = {});

// An operation of the model's graph, shown by its own name. Thread-safe.
void addOp(std::string name, TimePoint begin, TimePoint end);

// CLOCK_MONOTONIC.
TimePoint now();

// From its construction to its end.
class Span {
 public:
  explicit Span(const char* name) : name_(name), begin_(recording() ? now() : TimePoint{}) {}
  ~Span() {
    if (begin_ != TimePoint{} && recording()) add(name_, begin_, now());
  }
  Span(const Span&) = delete;
  Span& operator=(const Span&) = delete;

 private:
  const char* const name_;
  const TimePoint begin_;
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
