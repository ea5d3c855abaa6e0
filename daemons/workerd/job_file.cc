#include "daemons/workerd/job_file.h"

#include <fmt/format.h>

#include "common/base/error.h"
#include "common/base/file.h"
#include "common/base/file_system.h"
#include "common/base/ids.h"
#include "common/base/log.h"
#include "common/base/text.h"
#include "common/base/wall_time.h"
#include "common/checkpoint/checkpoint_folder.h"
#include "common/shard/declaration.h"
#include "common/train/job_settings.h"

namespace dtf::workerd {

namespace {

std::string comment(const std::string& text) {
  return "# " + printable(text) + "\n";
}

// Checkpoints of an earlier run are not this model: `eval` and `predict` would read them. A job
// that saves goes on from them, or sets them aside itself (--fresh).
void setEarlierCheckpointsAside(const cluster::JobSpec& job) {
  if (!job.train || job.train->checkpoint) return;
  try {
    checkpoint::CheckpointFolder folder(realFileSystem(), job.run_dir / "checkpoints",
                                        Incarnation::ofNow());
    if (const auto aside = folder.setAside())
      log::info("event=checkpoints_set_aside folder={}", aside->string());
  } catch (const Error& error) {
    log::warning("event=checkpoints_not_set_aside reason=\"{}\"", error.message());
  }
}

}  // namespace

void writeJobFile(const cluster::JobSpec& job, const JobData& data,
                  const arena::ModelDeclaration& declaration) {
  setEarlierCheckpointsAside(job);
  std::string text =
      comment(fmt::format("dtf {}, {}: the job as it was understood, with --set and "
                          "defaults",
                          DTF_VERSION, wallTimeText()));
  text +=
      comment("paths of data start at the folder of the file that named them: " + job.mark.str());
  if (data.eval) text += comment("data.eval: " + train::datasetText(*data.eval));
  for (const arena::Setting& setting : shard::settingsOf(declaration))
    text += comment(setting.name + ": " + setting.value);
  try {
    atomicReplace(job.run_dir / "job.yaml", text + job.text);
  } catch (const Error& error) {
    log::warning("event=job_file_not_written reason=\"{}\"", error.message());
  }
}

}  // namespace dtf::workerd
