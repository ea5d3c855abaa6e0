#include "daemons/shard_metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/replication/epoch.h"
#include "common/serving/connection_metrics.h"

namespace dtf::daemons {

namespace {

double numberOf(uint64_t count) {
  return static_cast<double>(count);
}

Metric gradients(const replication::CoordinatorStatus& steps) {
  return {"dtf_gradients_total",
          "Gradients pushed by workers, by outcome.",
          Metric::Kind::kCounter,
          {{numberOf(steps.gradients_applied), {{"outcome", "applied"}}},
           {numberOf(steps.gradients_stale), {{"outcome", "stale"}}},
           {numberOf(steps.gradients_repeated), {{"outcome", "repeated"}}}}};
}

Metric workers(const std::vector<replication::Member>& members) {
  Metric metric{"dtf_workers", "Workers of the job, by state on this ps.", Metric::Kind::kGauge};
  using replication::MemberState;
  for (const MemberState state :
       {MemberState::kAwaited, MemberState::kJoined, MemberState::kFinished, MemberState::kLost}) {
    const auto count = std::count_if(members.begin(), members.end(),
                                     [state](const auto& member) { return member.state == state; });
    metric.values.push_back({static_cast<double>(count),
                             {{"state", std::string(replication::memberStateName(state))}}});
  }
  return metric;
}

Metric straggler(const std::optional<replication::Straggler>& named) {
  MetricValue value{0, {{"worker", ""}, {"phase", ""}}};
  if (named)
    value = {toSeconds(named->excess),
             {{"worker", replication::workerName(named->rank)},
              {"phase", std::string(replication::phaseName(named->phase))}}};
  return {"dtf_straggler_seconds",
          "Sync, on ps/0: seconds by which each step is longer because the others wait for this "
          "worker, and the phase that makes it slow; 0: no worker stands out.",
          Metric::Kind::kGauge,
          {value}};
}

// The bounds are powers of two, but for the last bucket that is counted one by one.
Metric staleness(const replication::StalenessHistogram& counted) {
  Metric metric{
      "dtf_staleness_steps",
      "Async: updates between a gradient's parameters and its own update, by other workers; with "
      "replication.overlap also the worker's own update before.",
      Metric::Kind::kHistogram};
  HistogramValue& histogram = metric.histogram;
  uint64_t begin = 0;
  for (const uint64_t at_most : {0, 1, 2, 4, 8, 16, 32, 63}) {
    HistogramValue::Bucket bucket{numberOf(at_most), 0};
    for (; begin <= at_most; ++begin) bucket.count += counted.counts.at(begin);
    histogram.buckets.push_back(bucket);
  }
  static_assert(replication::StalenessHistogram::kBuckets == 65);
  histogram.above = counted.counts.back();
  histogram.sum = numberOf(counted.sum);
  return metric;
}

std::vector<Metric> metricsOf(const host::PsReport& report) {
  const shard::ShardStatus& status = report.shard;
  const replication::CoordinatorStatus& steps = status.coordinator;
  std::vector<Metric> metrics = {
      gauge("dtf_global_step",
            "Updates of the parameters; falls when the job goes back to a checkpoint or snapshot.",
            numberOf(steps.global_step)),
      gauge("dtf_job_steps", "Global steps of the whole job; 0: not known yet.",
            numberOf(status.steps)),
      gradients(steps),
      counter("dtf_gradient_bytes_total", "Bytes of all received gradients, counted as float32.",
              numberOf(status.gradient_bytes)),
      staleness(steps.staleness),
      straggler(status.straggler),
      gauge("dtf_staleness_max_steps", "The largest staleness so far.",
            numberOf(steps.staleness.max)),
      workers(status.members),
      gauge("dtf_waiting_calls", "Calls of workers that wait for other workers or for values.",
            numberOf(status.callers_waiting)),
      gauge(
          "dtf_epoch",
          "Epoch of recovery: 1 at first, one more after each return to a checkpoint or snapshot; "
          "0: no values.",
          numberOf(replication::epochNumber(status.epoch))),
      gauge("dtf_parameter_bytes",
            "Bytes of the parameters on this ps, without the optimizer's slots.",
            numberOf(report.elements * sizeof(float)))};
  for (Metric& metric :
       serving::connectionMetrics({{"control", report.control}, {"bulk", report.bulk}}))
    metrics.push_back(std::move(metric));
  return metrics;
}

std::string statusText(const shard::ShardStatus& status) {
  const std::string steps =
      fmt::format("step {} of {}", status.coordinator.global_step, status.steps);
  if (status.missing.empty()) return steps;
  return status.initialised ? steps + ", waiting for " + status.missing
                            : "waiting for " + status.missing;
}

std::string whyNotReady(const shard::ShardStatus& status) {
  if (status.initialised) return "";
  return status.missing.empty() ? "it holds no values yet: the chief brings them"
                                : "it holds no values yet, and waits for " + status.missing;
}

}  // namespace

ServiceLook lookOf(const host::PsReport& report) {
  DTF_CHECK(report.shard.declared || !report.shard.initialised);
  return {statusText(report.shard), false, whyNotReady(report.shard), metricsOf(report)};
}

}  // namespace dtf::daemons
