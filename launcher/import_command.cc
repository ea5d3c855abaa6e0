// dtf-launch import: weights of another program, as the checkpoint that a job starts from.

#include <fmt/format.h>

#include "common/base/error.h"
#include "common/base/file.h"
#include "common/base/print.h"
#include "common/base/run_lock.h"
#include "common/base/text.h"
#include "common/model_files/weight_names.h"
#include "common/train/imported_checkpoint.h"
#include "launcher/commands.h"
#include "launcher/output.h"
#include "launcher/trained_model.h"

namespace dtf::launcher {

namespace {

std::string linesOf(const char* title, const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines)
    text += fmt::format("  {:<10}  {}\n", title, printable(line));
  return text;
}

// A folder that was made for weights that don't fit goes with them.
train::ImportReport save(const cluster::JobSpec& job, const model_files::FoundWeights& weights) {
  const bool is_new = !std::filesystem::exists(job.run_dir);
  makeWritableFolder(job.run_dir);
  try {
    return train::saveImported(realFileSystem(), SystemClock(), job, weights);
  } catch (const Error&) {
    std::error_code not_empty;
    if (is_new) std::filesystem::remove(job.run_dir, not_empty);
    throw;
  }
}

}  // namespace

int importModel(const cluster::JobSpec& job, const Options& options) {
  if (!options.from)
    throw Error(ErrorCode::kUsage,
                "--from is missing: name FILE.safetensors, FILE.npz or FILE.onnx");
  trainOf(job);
  if (runningLaunch(job.run_dir))
    throw Error(ErrorCode::kUnavailable,
                fmt::format("{} is running in {}: import weights before the job starts", job.job,
                            job.run_dir.string()));
  model_files::FoundWeights weights = model_files::readWeights(*options.from, options.layout);
  model_files::applyNames(weights, options.names, *options.from);
  const train::ImportReport report = save(job, weights);
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
