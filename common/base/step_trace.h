#pragma once

// What the tasks of a session did in one step, where its client wants to see it: spans on
// CLOCK_MONOTONIC, which all processes of a host share, and the timeline of all tasks. trace.h has
// the steps of training jobs, of which a process runs one at a time; here each step that is traced
// has a collector of its own, and one that isn't has none.

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

// Of one task in one step. What is beyond either is dropped and counted.
inline constexpr size_t kStepSpansMax = 4096;
inline constexpr size_t kStepTextBytesMax = 1 << 20;  // names and details together
// What a trace takes at most.
inline constexpr uint64_t kStepTraceBytesMax = kStepTextBytesMax + kStepSpansMax * 128;

// Value type.
struct StepSpan {
  enum class Kind : uint8_t {
    kOp,       // of the graph, by its name
    kPiece,    // that a device ran without waiting: its ops, and what lies between them
    kReceive,  // the wait for a tensor, from the begin of the part
    kSend,     // from when a tensor leaves until its receiver has it
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
  TimePoint begin{}, end{};         // of its part
  std::vector<std::string> tracks;  // threads, and what runs in none
  std::vector<StepSpan> spans;      // as they ended
  uint64_t dropped = 0;
  TimePoint anchor{};    // one moment by two clocks
  int64_t unix_us = 0;   // the other: the time of day
  bool is_given = true;  // false: the task is of a version that gives none; the rest is not set
};

// Collects the spans of one task's part of a step.
// Threads: thread-safe. Blocks: never.
class StepTrace {
 public:
  explicit StepTrace(TaskId task);  // the part begins
  StepTrace(const StepTrace&) = delete;
  StepTrace& operator=(const StepTrace&) = delete;

  // `span.track` is set by this: where nothing computes, to a track of that kind of spans, else to
  // the calling thread's.
  void add(StepSpan span);

  // `name` as a launch has it: "Conv2D conv1/Conv2D".
  void addOp(std::string_view name, TimePoint begin, TimePoint end);

  // The part has ended. Spans that come later have no effect.
  TaskTrace finish();

  // Of the piece that the calling thread runs; nullptr: of none that is traced.
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

// While it lives, the ops that its thread runs belong to `trace`, and it is a span itself.
// nullptr: nothing is recorded.
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

// The timeline of a step, as json() of trace.h: pid stands for the task, tid for a track; spans of
// one track that overlap are shown beside each other. `step`: for people.
std::string timelineJson(uint64_t step, std::span<const TaskTrace> tasks);

}  // namespace dtf::trace
