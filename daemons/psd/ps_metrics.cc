#include "daemons/psd/ps_metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "common/ps/epoch.h"

namespace dtf::psd {

namespace {

double countOf(uint64_t count) {
  return static_cast<double>(count);
}

Metric gradients(const ps::CoordinatorStatus& steps) {
  return {"dtf_gradients_total",
          "Gradients that workers have pushed, by outcome.",
          Metric::Kind::kCounter,
          {{countOf(steps.gradients_applied), {{"outcome", "applied"}}},
           {countOf(steps.gradients_stale), {{"outcome", "stale"}}},
           {countOf(steps.gradients_repeated), {{"outcome", "repeated"}}}}};
}

Metric workers(const std::vector<ps::Member>& members) {
  Metric metric{"dtf_workers", "Workers of the job, by their state on this ps.",
                Metric::Kind::kGauge};
  using ps::MemberState;
  for (const MemberState state :
       {MemberState::kAwaited, MemberState::kJoined, MemberState::kFinished, MemberState::kLost}) {
    const auto count = std::count_if(members.begin(), members.end(),
                                     [state](const auto& member) { return member.state == state; });
    metric.values.push_back(
        {static_cast<double>(count), {{"state", std::string(ps::memberStateName(state))}}});
  }
  return metric;
}

// The bounds are powers of two, but for the last bucket that is counted one by one.
Metric staleness(const ps::StalenessHistogram& counted) {
  Metric metric{
      "dtf_staleness_steps",
      "Async: updates between the parameters that a gradient was computed from and its own: "
      "by other workers, and with replication.overlap the worker's own one before.",
      Metric::Kind::kHistogram};
  HistogramValue& histogram = metric.histogram;
  uint64_t begin = 0;
  for (const uint64_t at_most : {0, 1, 2, 4, 8, 16, 32, 63}) {
    HistogramValue::Bucket bucket{countOf(at_most), 0};
    for (; begin <= at_most; ++begin) bucket.count += counted.counts.at(begin);
    histogram.buckets.push_back(bucket);
  }
  static_assert(ps::StalenessHistogram::kBuckets == 65);
  histogram.above = counted.counts.back();
  histogram.sum = countOf(counted.sum);
  return metric;
}

std::vector<Metric> metricsOf(const PsReport& report) {
  const ps::ShardStatus& status = report.shard;
  const ps::CoordinatorStatus& steps = status.coordinator;
  std::vector<Metric> metrics = {
      gauge("dtf_global_step",
            "Updates that the parameters have had; less again when the job "
            "goes back to a checkpoint.",
            countOf(steps.global_step)),
      gauge("dtf_job_steps", "Global steps that the job is to train; 0: not known yet.",
            countOf(status.steps)),
      gradients(steps),
      counter("dtf_gradient_bytes_total", "Bytes of all gradients that came, as float32.",
              countOf(status.gradient_bytes)),
      staleness(steps.staleness),
      gauge("dtf_staleness_max_steps", "The largest staleness so far.",
            countOf(steps.staleness.max)),
      workers(status.members),
      gauge("dtf_waiting_calls", "Calls of workers that wait for other workers or for values.",
            countOf(status.callers_waiting)),
      gauge("dtf_epoch",
            "One more each time that all ps have gone back to a checkpoint; 0: no "
            "values.",
            countOf(ps::epochNumber(status.epoch))),
      gauge("dtf_parameter_bytes", "Bytes of the parameters on this ps, without the optimizer's.",
            countOf(report.elements * sizeof(float)))};
  for (Metric& metric :
       daemons::connectionMetrics({{"control", report.control}, {"bulk", report.bulk}}))
    metrics.push_back(std::move(metric));
  return metrics;
}

std::string statusText(const ps::ShardStatus& status) {
  const std::string steps =
      fmt::format("step {} of {}", status.coordinator.global_step, status.steps);
  if (status.missing.empty()) return steps;
  return status.initialised ? steps + ", waiting for " + status.missing
                            : "waiting for " + status.missing;
}

std::string whyNotReady(const ps::ShardStatus& status) {
  if (status.initialised) return "";
  return status.missing.empty() ? "it holds no values yet: the chief brings them"
                                : "it holds no values yet, and waits for " + status.missing;
}

}  // namespace

daemons::ServiceLook lookOf(const PsReport& report) {
  return {statusText(report.shard), false, whyNotReady(report.shard), metricsOf(report)};
}

}  // namespace dtf::psd
