#include "launcher/announce.h"

#include <fmt/core.h>

#include <algorithm>
#include <span>
#include <vector>

#include "common/base/ids.h"
#include "common/base/text.h"
#include "common/cluster/optimizer_spec.h"
#include "common/ps/replication_rules.h"
#include "launcher/progress.h"

namespace dtf::launcher {

namespace {

constexpr size_t kPsNamedMax = 4;  // in one line
constexpr size_t kTargetsNamedMax = 8;

std::string counted(uint64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

}  // namespace

std::string startText(const cluster::JobSpec& job, const std::filesystem::path& logs) {
  if (job.cluster.ps.empty())
    return fmt::format("{}: one process, no ps; logs in {}", job.job, logs.string());
  return fmt::format("{}: {} ps, {}; logs in {}", job.job, job.cluster.ps.size(),
                     counted(job.cluster.worker.size(), "worker"), logs.string());
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
  const bool narrows = ps::narrowsTransfers(job.train->replication);
  const std::optional<uint64_t> staleness = ps::staleness(job.train->replication);
  return text + fmt::format("; {}, {}{}{}, {}", cluster::optimizerName(job.train->optimizer.kind),
                            ps::replicationName(job.train->replication),
                            staleness ? fmt::format(" by {}", counted(*staleness, "step")) : "",
                            narrows ? " as bfloat16" : "",
                            job.train->epochs > 0 ? counted(job.train->epochs, "epoch")
                                                  : counted(job.train->steps, "step"));
}

std::string placementText(const ModelNotice& model) {
  const std::vector<uint64_t>& ps = model.ps_bytes;
  if (ps.size() > kPsNamedMax) {
    const auto [least, most] = std::minmax_element(ps.begin(), ps.end());
    return fmt::format("placement: {} to {} on each of {} ps", bytesText(*least), bytesText(*most),
                       ps.size());
  }
  std::vector<std::string> parts;
  for (uint32_t i = 0; i < ps.size(); ++i)
    parts.push_back(TaskId{JobKind::kPs, i}.name() + " " + bytesText(ps[i]));
  return "placement: " + join(parts, ", ");
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
