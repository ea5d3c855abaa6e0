#include "common/train/saved_preparation.h"

#include <optional>

#include "common/base/check.h"
#include "common/base/ids.h"
#include "common/checkpoint/checkpoint_folder.h"
#include "common/data/learn_table.h"
#include "common/data/table_preparation.h"
#include "common/train/saved_signature.h"

namespace dtf::train {

cluster::DatasetSpec withSavedPreparation(const checkpoint::Manifest& saved,
                                          const cluster::DatasetSpec& data) {
  const std::optional<data::DataSignature> signature = signatureOf(saved);
  return signature ? data::withLearnedOf(*signature, data) : data;
}

cluster::DatasetSpec preparedTraining(FileSystem& file_system, const cluster::JobSpec& job,
                                      bool fresh) {
  DTF_CHECK(job.train.has_value());
  const cluster::DatasetSpec& data = job.train->data.train;
  if (!data.csv.learns() || fresh || !job.train->checkpoint) return data::learnTable(data);
  checkpoint::CheckpointFolder folder(file_system, job.run_dir / "checkpoints",
                                      Incarnation::ofNow());
  const checkpoint::Latest latest = folder.latestValid();
  return data::learnTable(latest.found ? withSavedPreparation(latest.found->manifest, data) : data);
}

}  // namespace dtf::train
