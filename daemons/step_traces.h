#pragma once

// The traces of steps that a cluster file asks for (`traces:`), on their way to a collector of
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

// Spans (common/base/trace.h) are put into a queue, and sent from a thread of their own: who trains
// waits for no collector. What the queue has no room for, and what no collector takes, is dropped
// and counted.
// Owns: the thread, the queue; until it ends, trace::sample() is its.
// Threads: made before threads that record; metrics() from any.
// Blocks: destructor, kFlushWithin or what a request under way has left of kPostWithin, whichever
// is longer; and longer while the resolver looks for the name of a host.
class StepTraces {
 public:
  static constexpr size_t kQueueMax = 2048;                            // spans
  static constexpr size_t kBatchMax = 512;                             // of one request
  static constexpr Duration kPostWithin = std::chrono::seconds(2);     // of one request
  static constexpr Duration kGather = std::chrono::milliseconds(500);  // for a request to fill
  static constexpr Duration kPause = std::chrono::seconds(1);  // after one that came to nothing
  static constexpr Duration kFlushWithin = std::chrono::seconds(2);  // at the end, for the rest

  // Of a job that asks for none it does nothing, and has no thread.
  explicit StepTraces(const cluster::TaskOptions& options);
  ~StepTraces();
  StepTraces(const StepTraces&) = delete;
  StepTraces& operator=(const StepTraces&) = delete;

  // Empty where nothing was asked for.
  std::vector<Metric> metrics() const;

 private:
  struct Queue;
  void run();
  bool send(const std::vector<trace::SampledSpan>& spans, Duration within);
  void tell(const std::string& problem);

  const cluster::TracesSpec spec_;
  const trace::OtlpResource resource_;
  std::shared_ptr<Queue> queue_;  // shared with spans that end at last; null: nothing was asked for
  bool is_failing_ = false;       // the thread's
  Thread thread_;                 // last: its body uses the others
};

}  // namespace dtf::daemons
