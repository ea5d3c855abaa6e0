#include "launcher/kept_checkpoints.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "common/base/error.h"
#include "common/base/file_system.h"
#include "common/base/ids.h"
#include "common/base/text.h"
#include "common/checkpoint/checkpoint_folder.h"
#include "common/checkpoint/restore.h"
#include "common/train/evaluation_history.h"

namespace dtf::launcher {

namespace {

namespace fs = std::filesystem;

constexpr size_t kRowsMax = 8;

std::optional<uint64_t> bestStep(const cluster::JobSpec& job, const fs::path& checkpoints) {
  const bool has_metric = job.train && job.train->checkpoint;
  const std::string metric = has_metric ? job.train->checkpoint->keep_best : "";
  if (metric.empty()) return std::nullopt;
  std::vector<train::PastEvaluation> history = train::readEvaluations(checkpoints);
  train::forgetLostCheckpoints(checkpoints, history);
  const train::PastEvaluation* const best = train::bestCheckpoint(history, metric);
  return best == nullptr ? std::nullopt : best->checkpoint;
}

// A checkpoint that is damaged is listed by its step alone.
KeptCheckpoint checkpointOf(uint64_t step, const fs::path& folder) {
  KeptCheckpoint kept{step, "", 0, false};
  try {
    const checkpoint::Manifest manifest = checkpoint::readManifest(realFileSystem(), folder);
    kept.saved = manifest.created;
    for (const checkpoint::ShardFile& shard : manifest.shards) kept.bytes += shard.bytes;
  } catch (const Error&) {
  }
  return kept;
}

}  // namespace

std::vector<KeptCheckpoint> keptCheckpoints(const cluster::JobSpec& job, const fs::path& run_dir) {
  std::vector<KeptCheckpoint> kept;
  try {
    checkpoint::CheckpointFolder folder(realFileSystem(), run_dir / "checkpoints",
                                        Incarnation::ofNow());
    for (const uint64_t step : folder.steps())
      kept.push_back(checkpointOf(step, folder.stepFolder(step)));
    const std::optional<uint64_t> best = bestStep(job, folder.path());
    for (KeptCheckpoint& each : kept) each.is_best = each.step == best;
  } catch (const Error&) {
  }
  return kept;
}

std::vector<std::string> checkpointRows(const std::vector<KeptCheckpoint>& checkpoints) {
  const size_t older = checkpoints.size() - std::min(checkpoints.size(), kRowsMax);
  std::vector<std::string> rows;
  for (size_t i = 0; i < checkpoints.size(); ++i) {
    const KeptCheckpoint& each = checkpoints[i];
    if (i < older && !each.is_best) continue;
    rows.push_back(fmt::format("step {}, {}{}", each.step,
                               each.saved.empty()
                                   ? "which can't be read"
                                   : printable(each.saved) + ", " + bytesText(each.bytes),
                               each.is_best ? ", the best" : ""));
  }
  if (older > 0) rows.push_back(fmt::format("{} in all", checkpoints.size()));
  return rows;
}

Json checkpointsJson(const std::vector<KeptCheckpoint>& checkpoints) {
  Json list = Json::array();
  for (const KeptCheckpoint& each : checkpoints)
    list.push_back(Json{{"step", each.step},
                        {"saved", each.saved.empty() ? Json(nullptr) : Json(each.saved)},
                        {"bytes", each.bytes},
                        {"best", each.is_best}});
  return list;
}

}  // namespace dtf::launcher
