#include "common/base/step_trace.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "common/base/check.h"
#include "common/base/chrome_trace.h"
#include "common/base/json.h"
#include "common/base/thread.h"
#include "common/base/trace.h"

namespace dtf::trace {

namespace {

std::string trackOf(const StepSpan& span) {
  switch (span.kind) {
    case StepSpan::Kind::kReceive:
      return "rendezvous";
    case StepSpan::Kind::kSend:
      return "transfers";
    case StepSpan::Kind::kOp:
    case StepSpan::Kind::kPiece:
      break;
  }
  return threadName();
}

}  // namespace

constinit thread_local StepTrace* StepTrace::here_ = nullptr;

StepTrace::StepTrace(TaskId task) : task_(task), begin_(now()) {
  MutexLock lock(mutex_);
  trace_.spans.reserve(kStepSpansMax);
}

void StepTrace::add(StepSpan span) {
  DTF_CHECK(span.begin <= span.end);
  const std::string track = trackOf(span);
  MutexLock lock(mutex_);
  if (is_over_) return;
  const size_t bytes = span.name.size() + span.detail.size();
  if (trace_.spans.size() >= kStepSpansMax || text_bytes_ + bytes > kStepTextBytesMax) {
    ++trace_.dropped;
    return;
  }
  text_bytes_ += bytes;
  const auto [known, is_new] = tracks_.emplace(track, static_cast<uint32_t>(trace_.tracks.size()));
  if (is_new) trace_.tracks.push_back(track);
  span.track = known->second;
  trace_.spans.push_back(std::move(span));
}

void StepTrace::addOp(std::string_view name, TimePoint begin, TimePoint end) {
  const size_t op = name.find(' ');
  const bool has_op = op != std::string_view::npos;
  add({.kind = StepSpan::Kind::kOp,
       .name = std::string(has_op ? name.substr(op + 1) : name),
       .detail = std::string(has_op ? name.substr(0, op) : std::string_view()),
       .begin = begin,
       .end = end});
}

TaskTrace StepTrace::finish() {
  MutexLock lock(mutex_);
  DTF_CHECK(!is_over_);
  is_over_ = true;
  trace_.task = task_;
  trace_.begin = begin_;
  trace_.end = trace_.anchor = now();
  const auto wall = std::chrono::system_clock::now().time_since_epoch();
  trace_.unix_us = std::chrono::duration_cast<std::chrono::microseconds>(wall).count();
  return std::move(trace_);
}

void PieceScope::enter() {
  before_ = std::exchange(StepTrace::here_, trace_);
  begin_ = now();
}

void PieceScope::leave() {
  StepTrace::here_ = before_;
  trace_->add({.kind = StepSpan::Kind::kPiece,
               .name = "piece " + std::to_string(piece_),
               .detail = {},
               .begin = begin_,
               .end = now()});
}

// ---- the timeline

namespace {

// The whole part; tracks come after it.
constexpr int kPartTid = 1;

Json spanJson(int pid, int tid, const char* category, const std::string& name, TimePoint begin,
              TimePoint end, Json args) {
  return {{"ph", "X"},
          {"cat", category},
          {"name", name},
          {"pid", pid},
          {"tid", tid},
          {"ts", microseconds(begin.time_since_epoch())},
          {"dur", microseconds(end - begin)},
          {"args", std::move(args)}};
}

// The threads in which one task's spans are shown.
class Tids {
 public:
  Tids(int pid, Json& events) : pid_(pid), events_(events) {}

  int add(const std::string& name) {
    events_.push_back(metadata("thread_name", pid_, "name", name));
    events_.back()["tid"] = ++last_;
    return last_;
  }

 private:
  const int pid_;
  Json& events_;
  int last_ = kPartTid - 1;
};

// Chrome shows spans of one thread correctly only if they nest. Spans that belong to no thread go
// to the first lane that is free when they begin.
class Lanes {
 public:
  Lanes(std::string name, Tids& tids) : name_(std::move(name)), tids_(tids) {}

  int tidFor(const StepSpan& span) {
    const bool is_in_thread =
        span.kind == StepSpan::Kind::kOp || span.kind == StepSpan::Kind::kPiece;
    auto free = std::find_if(lanes_.begin(), lanes_.end(), [&](const auto& lane) {
      return is_in_thread || lane.second <= span.begin;
    });
    if (free == lanes_.end()) {
      const std::string number = lanes_.empty() ? "" : " " + std::to_string(lanes_.size() + 1);
      free = lanes_.insert(free, {tids_.add(name_ + number), {}});
    }
    free->second = span.end;
    return free->first;
  }

 private:
  const std::string name_;
  Tids& tids_;
  std::vector<std::pair<int, TimePoint>> lanes_;  // with the end of the last span
};

void addTask(uint64_t step, const TaskTrace& trace, Json& events) {
  const int pid = pidOf(trace.task);
  events.push_back(metadata("process_name", pid, "name", trace.task.name()));
  events.push_back(metadata("process_sort_index", pid, "sort_index", pid));
  Tids tids(pid, events);
  const int part = tids.add("part");
  DTF_CHECK(part == kPartTid);
  events.push_back(
      spanJson(pid, part, "part", "run part", trace.begin, trace.end, {{"step", step}}));
  std::vector<Lanes> lanes;
  for (const std::string& track : trace.tracks) lanes.emplace_back(track, tids);
  std::vector<const StepSpan*> in_order;
  for (const StepSpan& span : trace.spans) in_order.push_back(&span);
  std::stable_sort(in_order.begin(), in_order.end(), [](const StepSpan* a, const StepSpan* b) {
    return a->begin != b->begin ? a->begin < b->begin : a->end > b->end;
  });
  for (const StepSpan* const span : in_order) {
    Json args = {{"step", step}};
    if (!span->detail.empty()) args["detail"] = span->detail;
    events.push_back(spanJson(pid, lanes.at(span->track).tidFor(*span),
                              kStepSpanKinds.at(static_cast<size_t>(span->kind)), span->name,
                              span->begin, span->end, std::move(args)));
  }
}

}  // namespace

std::string timelineJson(uint64_t step, std::span<const TaskTrace> tasks) {
  Json events = Json::array(), about = Json::array();
  uint64_t dropped = 0;
  for (const TaskTrace& trace : tasks) {
    Json task = {{"task", trace.task.name()}, {"step", step}, {"traced", trace.is_given}};
    if (trace.is_given) {
      addTask(step, trace, events);
      dropped += trace.dropped;
      task["spans_dropped"] = trace.dropped;
      task["clock_anchor"] = clockAnchor(trace.anchor, trace.unix_us);
    }
    about.push_back(std::move(task));
  }
  return Json{{"traceEvents", std::move(events)},
              {"otherData",
               {{"step", step}, {"spans_dropped", dropped}, {"tasks", std::move(about)}}}}
             // A peer's names may contain any bytes.
             .dump() +
         "\n";
}

}  // namespace dtf::trace
