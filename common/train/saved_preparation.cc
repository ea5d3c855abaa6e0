#include "common/train/saved_preparation.h"

#include <optional>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/base/ids.h"
#include "common/checkpoint/checkpoint_folder.h"
#include "common/checkpoint/restore.h"
#include "common/data/learn_table.h"
#include "common/data/table_preparation.h"
#include "common/train/saved_signature.h"

namespace dtf::train {

namespace {

// Returns the newest manifest that can be decoded, without a look at the shards, which may be large
// or on other hosts. The chief verifies the checkpoint that it restores, and reports damage; an
// older one has the same preparation, or is refused.
std::optional<checkpoint::Manifest> newestManifest(FileSystem& file_system,
                                                   const cluster::JobSpec& job) {
  checkpoint::CheckpointFolder folder(file_system, job.run_dir / "checkpoints",
                                      Incarnation::ofNow());
  const std::vector<uint64_t> steps = folder.steps();
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    try {
      checkpoint::Manifest manifest =
          checkpoint::readManifest(file_system, folder.stepFolder(*step));
      if (manifest.global_step == *step) return manifest;
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kBadData) throw;
    }
  }
  return std::nullopt;
}

}  // namespace

cluster::DatasetSpec withSavedPreparation(const checkpoint::Manifest& saved,
                                          const cluster::DatasetSpec& data) {
  const std::optional<data::DataSignature> signature = signatureOf(saved);
  return signature ? data::withLearnedOf(*signature, data) : data;
}

PreparedTable preparedTraining(FileSystem& file_system, const cluster::JobSpec& job, bool fresh) {
  DTF_CHECK(job.train.has_value());
  const cluster::DatasetSpec& data = job.train->data.train;
  const bool is_saved = data.csv.learns() && !fresh && job.train->checkpoint;
  const std::optional<checkpoint::Manifest> saved =
      is_saved ? newestManifest(file_system, job) : std::nullopt;
  if (!saved) return {data::learnTable(data), std::nullopt};
  cluster::DatasetSpec prepared = withSavedPreparation(*saved, data);
  if (prepared.csv.learned) return {std::move(prepared), saved->global_step};
  return {data::learnTable(prepared), std::nullopt};
}

}  // namespace dtf::train
