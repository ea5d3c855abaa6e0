#pragma once

// The trace of one step of a session, if its client requests it: each task's spans on
// CLOCK_MONOTONIC, which all processes of a host share, and the timeline of all tasks. trace.h
// traces training jobs, where a process runs one step at a time; here each traced step has its own
// collector.

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/clock.h"
#include "common/base/ids.h"
#include "common/base/mutex.h"

namespace dtf::trace {

// The limits for one task in one step. Spans beyond either are dropped and counted.
inline constexpr size_t kStepSpansMax = 4096;
inline constexpr size_t kStepTextBytesMax = 1 << 20;  // names and details together
// The largest size of a trace.
inline constexpr uint64_t kStepTraceBytesMax = kStepTextBytesMax + kStepSpansMax * 128;

// Value type.
struct StepSpan {
  enum class Kind : uint8_t {
    kOp,       // an op of the graph, with its name
    kPiece,    // a piece that a device ran without waiting: its ops and the gaps between them
    kReceive,  // the wait for a tensor, from the start of the part
    kSend,     // from the departure of a tensor until its receiver has it
  };
  Kind kind = Kind::kOp;
  std::string name;
  std::string detail;  // may be empty
  uint32_t track = 0;  // index into TaskTrace::tracks
  TimePoint begin{}, end{};
};
inline constexpr std::array<const char*, 4> kStepSpanKinds = {"op", "piece", "receive", "send"};

// Value type.
struct TaskTrace {
  TaskId task;
  TimePoint begin{}, end{};         // of the task's part
  std::vector<std::string> tracks;  // threads, and lanes for spans without a thread
  std::vector<StepSpan> spans;      // in the order of their ends
  uint64_t dropped = 0;
  TimePoint anchor{};    // one moment on two clocks
  int64_t unix_us = 0;   // the same moment as time of day
  bool is_given = true;  // false: the task's version supports no traces; the rest is not set
};

// Collects the spans of one task's part of a step.
// Threads: thread-safe. Blocks: never.
class StepTrace {
 public:
  explicit StepTrace(TaskId task);  // the part begins
  StepTrace(const StepTrace&) = delete;
  StepTrace& operator=(const StepTrace&) = delete;

  // Adds a span and sets its `track`: the calling thread's, or the track of its kind if it does not
  // compute.
  void add(StepSpan span);

  // `name`: as in a launch, "Conv2D conv1/Conv2D".
  void addOp(std::string_view name, TimePoint begin, TimePoint end);

  // The part has ended. Spans that come later have no effect.
  TaskTrace finish();

  // Returns the trace of the piece that the calling thread runs; nullptr if it runs none that is
  // traced.
  static StepTrace* here() { return here_; }

 private:
  friend class PieceScope;

  const TaskId task_;
  const TimePoint begin_;
  static constinit thread_local StepTrace* here_;
  Mutex mutex_;
  TaskTrace trace_ DTF_GUARDED_BY(mutex_);
  std::map<std::string, uint32_t> tracks_ DTF_GUARDED_BY(mutex_);  // index by name
  size_t text_bytes_ DTF_GUARDED_BY(mutex_) = 0;
  bool is_over_ DTF_GUARDED_BY(mutex_) = false;
};

// While it lives, ops of its thread are recorded in `trace`; the scope itself becomes a span.
// nullptr records nothing.
// Borrows: `trace`.
class [[nodiscard]] PieceScope {
 public:
  PieceScope(StepTrace* trace, size_t piece) : trace_(trace), piece_(piece) {
    if (trace != nullptr) enter();
  }
  ~PieceScope() {
    if (trace_ != nullptr) leave();
  }
  PieceScope(const PieceScope&) = delete;
  PieceScope& operator=(const PieceScope&) = delete;

 private:
  void enter();
  void leave();

  StepTrace* const trace_;
  const size_t piece_;
  StepTrace* before_ = nullptr;
  TimePoint begin_{};
};

// Returns the timeline of a step in the format of json() in trace.h: pid is the task, tid the
// track; overlapping spans of a track are shown side by side. `step`: shown to readers.
std::string timelineJson(uint64_t step, std::span<const TaskTrace> tasks);

}  // namespace dtf::trace
