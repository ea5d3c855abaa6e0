#include "daemons/workerd/worker_metrics.h"

namespace dtf::workerd {

namespace {

double countOf(uint64_t count) {
  return static_cast<double>(count);
}

Metric stepSeconds(const train::StepTimes& times) {
  Metric metric{"dtf_step_seconds",
                "Seconds for a batch of this worker, from one answer of the ps to the next.",
                Metric::Kind::kHistogram};
  for (size_t i = 0; i < train::StepTimes::kAtMost.size(); ++i)
    metric.histogram.buckets.push_back({train::StepTimes::kAtMost[i], times.counts[i]});
  metric.histogram.above = times.counts.back();
  metric.histogram.sum = times.sum;
  return metric;
}

Metric phaseSeconds(const replication::PhaseTimes& times) {
  Metric metric{"dtf_phase_seconds_total",
                "Seconds of this worker's steps, by phase: it reads data, computes, sends and "
                "receives, waits for other workers and the update, evaluates.",
                Metric::Kind::kCounter};
  for (size_t i = 0; i < times.each.size(); ++i)
    metric.values.push_back(
        {toSeconds(times.each[i]), {{"phase", std::string(replication::kPhaseNames[i])}}});
  return metric;
}

void addCheckpoints(const train::CheckpointStatus& checkpoints, std::vector<Metric>& metrics) {
  metrics.push_back({"dtf_checkpoints_total",
                     "Checkpoints taken by the chief, by outcome.",
                     Metric::Kind::kCounter,
                     {{countOf(checkpoints.saved), {{"outcome", "saved"}}},
                      {countOf(checkpoints.failed), {{"outcome", "failed"}}}}});
  if (checkpoints.last_step)
    metrics.push_back(gauge("dtf_checkpoint_step", "Global step of the newest checkpoint.",
                            countOf(*checkpoints.last_step)));
}

std::vector<Metric> metricsOf(const WorkerStatus& status) {
  const WorkerStatus::Done done = status.done();
  const train::Progress& progress = done.progress;
  std::vector<Metric> metrics = {
      gauge("dtf_global_step",
            "Updates of the parameters; falls when the job goes back to a checkpoint or snapshot.",
            countOf(status.global_step)),
      gauge("dtf_job_steps", "Global steps of the whole job; 0: not known yet.",
            countOf(status.steps)),
      gauge("dtf_loss",
            "Sync: mean loss of the last step; async: loss of this worker's last batch.",
            status.loss),
      gauge("dtf_global_steps_per_second", "Global steps a second since the last report.",
            status.steps_per_second),
      gauge("dtf_job_examples_per_second",
            "Examples of all workers a second since the last report.", status.examples_per_second),
      {"dtf_batches_total",
       "Batches of this worker, by the outcome of their gradients.",
       Metric::Kind::kCounter,
       {{countOf(progress.batches - progress.batches_stale), {{"outcome", "applied"}}},
        {countOf(progress.batches_stale), {{"outcome", "stale"}}}}},
      counter("dtf_examples_total", "Examples in the batches of this worker.",
              countOf(progress.examples)),
      stepSeconds(progress.step_times),
      phaseSeconds(progress.phases_total)};
  if (done.checkpoints) addCheckpoints(*done.checkpoints, metrics);
  return metrics;
}

}  // namespace

daemons::ServiceLook lookOf(const WorkerStatus& status) {
  return {status.text(), status.phase() != WorkerPhase::kTraining, status.whyNotReady(),
          metricsOf(status)};
}

}  // namespace dtf::workerd
