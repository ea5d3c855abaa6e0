#pragma once

// Sends the traces of steps that a cluster file requests (`traces:`) to a collector of
// OpenTelemetry's.

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "common/base/metrics.h"
#include "common/base/mutex.h"
#include "common/base/otlp.h"
#include "common/base/thread.h"
#include "common/cluster/options.h"

namespace dtf::daemons {

// Queues spans (common/base/trace.h) and sends them from a thread of its own, so that training
// doesn't wait for a collector. Spans beyond the queue, and spans that no collector accepts, are
// dropped and counted.
// Owns: the thread, the queue; trace::sample() until it is destroyed.
// Threads: made before threads that record; metrics() from any.
// Blocks: destructor, for kFlushWithin or the rest of kPostWithin of the running request, whichever
// is longer; longer while a host name is resolved.
class StepTraces {
 public:
  static constexpr size_t kQueueMax = 2048;                            // spans
  static constexpr size_t kBatchMax = 512;                             // of one request
  static constexpr Duration kPostWithin = std::chrono::seconds(2);     // of one request
  static constexpr Duration kGather = std::chrono::milliseconds(500);  // for a request to fill
  static constexpr Duration kPause = std::chrono::seconds(1);          // after a failed request
  // at the end, for the remaining spans
  static constexpr Duration kFlushWithin = std::chrono::seconds(2);

  // Does nothing and has no thread for a job without `traces:`.
  explicit StepTraces(const cluster::TaskOptions& options);
  ~StepTraces();
  StepTraces(const StepTraces&) = delete;
  StepTraces& operator=(const StepTraces&) = delete;

  // Empty for a job without `traces:`.
  std::vector<Metric> metrics() const;

 private:
  struct Queue;
  void run();
  bool send(const std::vector<trace::SampledSpan>& spans, Duration within);
  void tell(const std::string& problem);

  const cluster::TracesSpec spec_;
  const trace::OtlpResource resource_;
  std::shared_ptr<Queue> queue_;  // shared with spans that end late; null: no `traces:`
  bool is_failing_ = false;       // the thread's
  Thread thread_;                 // last: its body uses the other members
};

}  // namespace dtf::daemons
