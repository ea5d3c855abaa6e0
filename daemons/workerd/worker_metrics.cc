#include "daemons/workerd/worker_metrics.h"

namespace dtf::workerd {

namespace {

double countOf(uint64_t count) {
  return static_cast<double>(count);
}

Metric stepSeconds(const train::StepTimes& times) {
  Metric metric{"dtf_step_seconds",
                "Seconds for a batch of this worker, from the previous answer to its own.",
                Metric::Kind::kHistogram};
  for (size_t i = 0; i < train::StepTimes::kAtMost.size(); ++i)
    metric.histogram.buckets.push_back({train::StepTimes::kAtMost[i], times.counts[i]});
  metric.histogram.above = times.counts.back();
  metric.histogram.sum = times.sum;
  return metric;
}

void addCheckpoints(const train::CheckpointStatus& checkpoints, std::vector<Metric>& metrics) {
  metrics.push_back({"dtf_checkpoints_total",
                     "Checkpoints that the chief has taken, by outcome.",
                     Metric::Kind::kCounter,
                     {{countOf(checkpoints.saved), {{"outcome", "saved"}}},
                      {countOf(checkpoints.failed), {{"outcome", "failed"}}}}});
  if (checkpoints.last_step)
    metrics.push_back(gauge("dtf_checkpoint_step", "Global step of the newest checkpoint.",
                            countOf(*checkpoints.last_step)));
}

std::vector<Metric> metricsOf(const WorkerStatus& status) {
  const WorkerStatus::Done done = status.done();
  std::vector<Metric> metrics = {
      gauge("dtf_global_step",
            "Updates that the parameters have had; falls when the job goes back to a checkpoint.",
            countOf(status.global_step)),
      gauge("dtf_job_steps", "Global steps that the job is to train; 0: not known yet.",
            countOf(status.steps)),
      gauge("dtf_loss", "Sync: the mean of a step; async: of this worker's last batch.",
            status.loss),
      gauge("dtf_global_steps_per_second", "Global steps since the report before.",
            status.steps_per_second),
      gauge("dtf_job_examples_per_second", "Examples of all workers since the report before.",
            status.examples_per_second),
      {"dtf_batches_total",
       "Batches of this worker, by the outcome of their gradients.",
       Metric::Kind::kCounter,
       {{countOf(done.batches - done.batches_stale), {{"outcome", "applied"}}},
        {countOf(done.batches_stale), {{"outcome", "stale"}}}}},
      counter("dtf_examples_total", "Examples of the batches of this worker.",
              countOf(done.examples)),
      stepSeconds(done.step_times)};
  if (done.checkpoints) addCheckpoints(*done.checkpoints, metrics);
  return metrics;
}

}  // namespace

daemons::ServiceLook lookOf(const WorkerStatus& status) {
  return {status.text(), status.phase() != WorkerPhase::kTraining, status.whyNotReady(),
          metricsOf(status)};
}

}  // namespace dtf::workerd
