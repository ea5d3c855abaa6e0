// dtf-launch export: the model of a checkpoint as one file for other programs.

#include <fmt/format.h>

#include "common/base/error.h"
#include "common/base/file.h"
#include "common/base/print.h"
#include "common/base/text.h"
#include "common/model_files/onnx_file.h"
#include "common/model_files/weight_files.h"
#include "launcher/commands.h"
#include "launcher/output.h"
#include "launcher/trained_model.h"

namespace dtf::launcher {

namespace {

using Encode = std::string (*)(const model_files::TrainedModel& trained);

// By the ending of the file.
Encode encoderFor(const std::filesystem::path& file) {
  const std::string ending = file.extension().string();
  if (ending == ".safetensors") return model_files::encodeSafetensors;
  if (ending == ".npz") return model_files::encodeNpz;
  if (ending == ".onnx") return model_files::encodeOnnx;
  throw Error(ErrorCode::kUsage,
              fmt::format("--to {}: unknown format; end the name with .safetensors, .npz or .onnx",
                          file.string()));
}

}  // namespace

int exportModel(const cluster::JobSpec& job, const Options& options) {
  if (!options.to)
    throw Error(ErrorCode::kUsage, "--to is missing: name FILE.safetensors, FILE.npz or FILE.onnx");
  const cluster::TrainSpec& train = trainOf(job);
  const Encode encode = encoderFor(*options.to);
  const train::SavedModel saved = openTrainedModel(job, options);
  const std::string bytes =
      encode({job.job, saved.step, saved.moving_averages, train.model, saved.variables,
              saved.class_names.empty() ? "" : train::encodeClassNames(saved.class_names),
              saved.signature ? data::encodeSignature(*saved.signature) : ""});
  atomicReplace(*options.to, bytes);
  const std::string scaling =
      model_files::scalingText(train.model, !train.data.train.csv.numeric.empty());
  if (options.json)
    printEvent("export", {{"job", job.job},
                          {"checkpoint", saved.checkpoint.string()},
                          {"step", saved.step},
                          {"moving_averages", saved.moving_averages},
                          {"to", options.to->string()},
                          {"bytes", bytes.size()},
                          {"variables", saved.variables.size()},
                          {"scaling", scaling}});
  else
    print(fmt::format("{}: step {}: {} variables in {}, {}{}\n  scaling     {}\n", job.job,
                      saved.step, saved.variables.size(), options.to->string(),
                      bytesText(bytes.size()),
                      saved.moving_averages ? ", their moving averages" : "", scaling));
  return 0;
}

}  // namespace dtf::launcher
