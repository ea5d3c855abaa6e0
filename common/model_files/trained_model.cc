#include "common/model_files/trained_model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/model/inference_graph.h"
#include "common/model/model_text.h"

namespace dtf::model_files {

namespace {

std::string outputText(const model::ModelSpec& model) {
  const int64_t units = model::outputOf(model).units;
  std::string text = fmt::format("{}: float32 [batch, {}]", model::outputName(model), units);
  if (model.loss.kind == model::Loss::kSoftmaxCrossEntropy)
    text += ", the softmax of the last layer";
  if (model.loss.kind == model::Loss::kSigmoidCrossEntropy)
    text += ", the sigmoid of each unit of the last layer";
  if (model.hasTargets()) return text;
  return text + (units > 1 ? fmt::format("; classes 0 to {}, the largest one counts", units - 1)
                           : "; class 1 beyond the middle, else class 0");
}

}  // namespace

std::string scalingText(const model::ModelSpec& model, bool prepares) {
  if (prepares) return "numeric_columns prepares the features; an ONNX file does it itself";
  return model.input_dtype == DType::kUInt8 ? "features / 255: pixels from 0 to 255 become 0 to 1"
                                            : "none: features are read as they are";
}

std::map<std::string, std::string> metadataOf(const TrainedModel& trained) {
  const model::ModelSpec& model = trained.model;
  std::map<std::string, std::string> metadata = {
      {"dtf_version", DTF_VERSION},
      {"job", trained.job},
      {"step", std::to_string(trained.step)},
      {"moving_averages", trained.moving_averages ? "true" : "false"},
      {"model", model::modelText(model)},
      {"input", fmt::format("features: {} [batch, {}]", dtypeName(model.input_dtype),
                            fmt::join(model.input_shape, ", "))},
      {"scaling", scalingText(model)},
      {"output", outputText(model)},
      {"layouts",
       "matrices [inputs, units]; filters [height, width, channels, filters], in ONNX "
       "[filters, channels, height, width]"}};
  if (model.features_are_categories) metadata["input"].clear();
  for (const model::CategoryInput& each : model.categories)
    metadata["input"] += fmt::format("{}categories/{}: int32 [batch, {}]",
                                     metadata["input"].empty() ? "" : "; ", each.name, each.count);
  if (!trained.classes.empty()) metadata["classes"] = trained.classes;
  if (!trained.signature.empty()) metadata[kSignatureEntry] = trained.signature;
  return metadata;
}

}  // namespace dtf::model_files
