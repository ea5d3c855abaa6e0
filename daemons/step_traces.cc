#include "daemons/step_traces.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/base/log.h"
#include "common/net/error_bridge.h"
#include "common/net/http_client.h"

namespace dtf::daemons {

namespace {

std::string hostName() {
  char name[256] = {};
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "";
}

double countOf(uint64_t count) {
  return static_cast<double>(count);
}

}  // namespace

struct StepTraces::Queue {
  mutable Mutex mutex;
  CondVar changed;
  std::deque<trace::SampledSpan> spans DTF_GUARDED_BY(mutex);
  std::optional<TimePoint> end_by DTF_GUARDED_BY(mutex);  // none: not ending
  uint64_t sent DTF_GUARDED_BY(mutex) = 0;
  uint64_t dropped DTF_GUARDED_BY(mutex) = 0;

  void put(trace::SampledSpan&& span) {
    const MutexLock lock(mutex);
    if (spans.size() >= kQueueMax) {
      ++dropped;
      return;
    }
    spans.push_back(std::move(span));
    if (spans.size() == 1 || spans.size() == kBatchMax) changed.notifyOne();
  }

  void count(uint64_t of, uint64_t lost) {
    DTF_CHECK(lost <= of);
    const MutexLock lock(mutex);
    sent += of - lost;
    dropped += lost;
  }

  // Waits for a batch to fill. Returns an empty batch if this is ending and nothing is left.
  std::vector<trace::SampledSpan> take() {
    const MutexLock lock(mutex);
    while (spans.empty() && !end_by) changed.wait(mutex);
    const TimePoint full_by = SystemClock().now() + kGather;
    while (spans.size() < kBatchMax && !end_by && changed.waitUntil(mutex, full_by)) continue;
    const auto end = spans.begin() + static_cast<std::ptrdiff_t>(std::min(spans.size(), kBatchMax));
    std::vector<trace::SampledSpan> batch(std::make_move_iterator(spans.begin()),
                                          std::make_move_iterator(end));
    spans.erase(spans.begin(), end);
    return batch;
  }

  // Waits after a failed request, or until this is ending.
  void pause() {
    const TimePoint until = SystemClock().now() + kPause;
    const MutexLock lock(mutex);
    while (!end_by && changed.waitUntil(mutex, until)) continue;
  }

  // Returns the time limit of the next request; zero: no time is left.
  Duration patience() const {
    const MutexLock lock(mutex);
    if (!end_by) return kPostWithin;
    const Duration left = *end_by - SystemClock().now();
    return std::clamp(left, Duration{}, kPostWithin);
  }
};

StepTraces::StepTraces(const cluster::TaskOptions& options)
    : spec_(options.job.traces.value_or(cluster::TracesSpec{})),
      resource_{options.job.job, options.task, hostName(), ::getpid()} {
  if (!options.job.traces) return;
  queue_ = std::make_shared<Queue>();
  trace::sample(options.task, spec_.every_steps,
                [queue = queue_](trace::SampledSpan&& span) { queue->put(std::move(span)); });
  thread_ = Thread("dtf-traces", [this] { run(); });
}

StepTraces::~StepTraces() {
  if (queue_ == nullptr) return;
  trace::stopSampling();
  const MutexLock lock(queue_->mutex);
  queue_->end_by = SystemClock().now() + kFlushWithin;
  queue_->changed.notifyAll();
}

void StepTraces::run() {
  for (;;) {
    const std::vector<trace::SampledSpan> batch = queue_->take();
    if (batch.empty()) return;
    const Duration within = queue_->patience();
    if (within <= Duration{})
      queue_->count(batch.size(), batch.size());
    else if (!send(batch, within))
      queue_->pause();
  }
}

// Returns false if no collector accepts them.
bool StepTraces::send(const std::vector<trace::SampledSpan>& spans, Duration within) {
  std::string problem;
  uint64_t lost = spans.size();
  try {
    const net::HttpReply reply =
        net::httpPost({spec_.collector.host, spec_.collector.port, spec_.path}, "application/json",
                      trace::otlpJson(resource_, spans, trace::ClockAnchor::now()), within);
    const bool is_taken = reply.status >= 200 && reply.status < 300;
    if (is_taken) lost = std::min<uint64_t>(lost, trace::rejectedSpans(reply.body));
    if (!is_taken) problem = fmt::format("{} answers {}", spec_.collector.str(), reply.status);
  } catch (const std::exception&) {  // an Error, or Asio's own if no descriptor or thread is left
    problem = net::currentError().message();
  }
  queue_->count(spans.size(), lost);
  tell(problem);
  return problem.empty();
}

// Logs a collector's failure and its return once each, not for every request.
void StepTraces::tell(const std::string& problem) {
  if (problem.empty() != is_failing_) return;
  is_failing_ = !problem.empty();
  if (is_failing_)
    log::warning("event=traces_dropped reason=\"{}\"", problem);
  else
    log::info("event=traces_taken collector={}", spec_.collector.str());
}

std::vector<Metric> StepTraces::metrics() const {
  if (queue_ == nullptr) return {};
  const MutexLock lock(queue_->mutex);
  return {{"dtf_trace_spans_total",
           "Spans of traced steps, by outcome: sent to the collector, or dropped.",
           Metric::Kind::kCounter,
           {{countOf(queue_->sent), {{"outcome", "sent"}}},
            {countOf(queue_->dropped), {{"outcome", "dropped"}}}}}};
}

}  // namespace dtf::daemons
