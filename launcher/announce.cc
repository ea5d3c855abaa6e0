#include "launcher/announce.h"

#include <fmt/core.h>

#include <algorithm>
#include <span>
#include <vector>

#include "common/base/check.h"
#include "common/base/ids.h"
#include "common/base/text.h"
#include "common/cluster/optimizer_spec.h"
#include "common/replication/replication_rules.h"
#include "launcher/progress.h"

namespace dtf::launcher {

namespace {

constexpr size_t kPsNamedMax = 4;  // in one line
constexpr size_t kTargetsNamedMax = 8;

std::string counted(uint64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

// The chief's page shows the whole job, and leads to the others.
std::string metricsText(const cluster::JobSpec& job) {
  if (!job.metrics) return "";
  const std::string url = cluster::metricsUrl(job, kChief);
  return url.empty() ? "; metrics at ports that event=metrics in the logs names"
                     : "; metrics of " + kChief.name() + " at " + url;
}

}  // namespace

std::string startText(const cluster::JobSpec& job, const std::filesystem::path& logs) {
  if (job.cluster.hybrid)
    return fmt::format("{}: {} ps for the tables, {}, which host the rest; logs in {}{}", job.job,
                       job.cluster.ps.size(), counted(job.cluster.worker.size(), "worker"),
                       logs.string(), metricsText(job));
  if (job.cluster.workersHost())
    return fmt::format("{}: {}, which host the parameters; logs in {}{}", job.job,
                       counted(job.cluster.worker.size(), "worker"), logs.string(),
                       metricsText(job));
  if (job.cluster.isOneProcess())
    return fmt::format("{}: one process, no ps; logs in {}{}", job.job, logs.string(),
                       metricsText(job));
  return fmt::format("{}: {} ps, {}; logs in {}{}", job.job, job.cluster.ps.size(),
                     counted(job.cluster.worker.size(), "worker"), logs.string(), metricsText(job));
}

std::string readyText(size_t tasks, double seconds) {
  DTF_CHECK(tasks > 0);
  const std::string whom = tasks == 1 ? "the task is" : fmt::format("all {} tasks are", tasks);
  return fmt::format("{} ready ({:.1f} s)", whom, seconds);
}

std::string servingText(const std::vector<std::string>& targets) {
  const size_t shown = std::min(targets.size(), kTargetsNamedMax);
  std::string text = "serving clients on " + join(std::span(targets).first(shown), ", ");
  if (targets.size() > shown) text += fmt::format(", and {} others", targets.size() - shown);
  return text;
}

std::string modelText(const ModelNotice& model, const cluster::JobSpec& job) {
  uint64_t bytes = 0;
  for (const uint64_t of_ps : model.ps_bytes) bytes += of_ps;
  std::string text = fmt::format("model: {}, {} ({})", counted(model.variables, "variable"),
                                 counted(model.parameters, "parameter"), bytesText(bytes));
  if (!job.train) return text;
  const cluster::ReplicationSpec& replication = job.train->replication;
  const std::optional<uint64_t> staleness = replication::staleness(job.train->replication);
  return text + fmt::format("; {}, {}{}{}, {}", cluster::optimizerName(job.train->optimizer.kind),
                            replication::replicationName(job.train->replication),
                            staleness ? fmt::format(" by {}", counted(*staleness, "step")) : "",
                            replication::recodesTransfers(replication)
                                ? " as " + replication::transferText(replication)
                                : "",
                            job.train->epochs > 0 ? counted(job.train->epochs, "epoch")
                                                  : counted(job.train->steps, "step"));
}

std::string placementText(const ModelNotice& model, const cluster::JobSpec& job) {
  const std::vector<uint64_t>& ps = model.ps_bytes;
  const ShardHosts hosts = job.cluster.shardHosts();
  if (ps.size() > kPsNamedMax) {
    const auto [least, most] = std::minmax_element(ps.begin(), ps.end());
    return fmt::format("placement: {} to {} on each of {} {}", bytesText(*least), bytesText(*most),
                       ps.size(), hosts.noun());
  }
  std::vector<std::string> parts;
  for (uint32_t i = 0; i < ps.size(); ++i)
    parts.push_back(hosts.of(i).name() + " " + bytesText(ps[i]));
  return "placement: " + join(parts, ", ");
}

std::string leftOutText(const LeftOutNotice& left_out) {
  std::string text =
      fmt::format("left out: {} that can't be read", counted(left_out.records, "record"));
  for (const std::string& reason : left_out.reasons) text += "\n  " + printable(reason);
  const size_t named = left_out.reasons.size();
  if (left_out.records > named && named > 0)
    text += fmt::format("\n  and {} more", left_out.records - named);
  return text;
}

std::string stoppingText(const cluster::JobSpec& job, bool saves) {
  if (saves) return ": saving a checkpoint and stopping; once more: at once, unsaved";
  return fmt::format(": stopping the tasks{}; once more: at once",
                     job.savesNothing() ? ", nothing is saved ('checkpoint: none')" : "");
}

std::string evaluationText(const EvaluationNotice& evaluation) {
  std::vector<std::string> parts;
  if (evaluation.accuracy) parts.push_back(fmt::format("accuracy {:.4f}", *evaluation.accuracy));
  if (evaluation.loss) parts.push_back("loss " + countText(*evaluation.loss));
  for (const auto& [name, value] : evaluation.metrics)
    parts.push_back(fmt::format("{} {:.4f}", name, value));
  return fmt::format("evaluation at step {}: {}", evaluation.step, join(parts, ", "));
}

}  // namespace dtf::launcher
