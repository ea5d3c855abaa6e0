#include "daemons/workerd/job_file.h"

#include <fmt/format.h>

#include "common/base/error.h"
#include "common/base/file.h"
#include "common/base/log.h"
#include "common/base/text.h"
#include "common/base/wall_time.h"
#include "common/ps/declaration.h"
#include "common/train/job_settings.h"

namespace dtf::workerd {

namespace {

std::string comment(const std::string& text) {
  return "# " + printable(text) + "\n";
}

}  // namespace

void writeJobFile(const cluster::JobSpec& job, const JobData& data,
                  const ps::ModelDeclaration& declaration) {
  std::string text =
      comment(fmt::format("dtf {}, {}: the job as it was understood, with --set and "
                          "defaults",
                          DTF_VERSION, wallTimeText()));
  text +=
      comment("paths of data start at the folder of the file that named them: " + job.mark.str());
  if (data.eval) text += comment("data.eval: " + train::datasetText(*data.eval));
  for (const ps::Setting& setting : ps::settingsOf(declaration))
    text += comment(setting.name + ": " + setting.value);
  try {
    atomicReplace(job.run_dir / "job.yaml", text + job.text);
  } catch (const Error& error) {
    log::warning("event=job_file_not_written reason=\"{}\"", error.message());
  }
}

}  // namespace dtf::workerd
