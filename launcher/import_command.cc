// dtf-launch import: weights of another program, as the checkpoint that a job starts from.

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "common/base/error.h"
#include "common/base/file.h"
#include "common/base/print.h"
#include "common/base/run_lock.h"
#include "common/train/imported_checkpoint.h"
#include "launcher/commands.h"
#include "launcher/output.h"
#include "launcher/trained_model.h"

namespace dtf::launcher {

namespace {

std::string linesOf(const char* title, const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += fmt::format("  {:<10}  {}\n", title, line);
  return text;
}

}  // namespace

int importModel(const cluster::JobSpec& job, const Options& options) {
  if (!options.from)
    throw Error(ErrorCode::kUsage,
                "from where? --from FILE.safetensors, FILE.npz or FILE.onnx says it");
  trainOf(job);
  if (runningLaunch(job.run_dir))
    throw Error(ErrorCode::kUnavailable,
                fmt::format("{} is running in {}: weights are imported before it starts", job.job,
                            job.run_dir.string()));
  const model_files::FoundWeights weights = model_files::readWeights(*options.from, options.layout);
  makeWritableFolder(job.run_dir);
  const train::ImportReport report =
      train::saveImported(realFileSystem(), SystemClock(), job, weights);
  if (options.json)
    printEvent("import", {{"job", job.job},
                          {"from", options.from->string()},
                          {"checkpoint", report.checkpoint.string()},
                          {"used", report.used},
                          {"drawn", report.drawn},
                          {"unused", report.unused}});
  else
    print(fmt::format("{}: {} of {} variables of {} in {}\n", job.job, report.used.size(),
                      report.used.size() + report.drawn.size(), options.from->string(),
                      report.checkpoint.string()) +
          linesOf("used", report.used) + linesOf("drawn anew", report.drawn) +
          linesOf("not used", report.unused));
  return 0;
}

}  // namespace dtf::launcher
