#include "common/train/job_settings.h"

#include <fmt/format.h>

#include <map>
#include <string>

#include "common/base/checksum.h"
#include "common/base/text.h"
#include "common/model/model_text.h"
#include "common/runtime/convolution_ways.h"
#include "common/train/trained_split.h"

namespace dtf::train {

namespace {

// Returns "[28, 28, 1]" for uint8 features and labels, as of images with classes. Otherwise adds
// the types: "float32 [10] with int32 []".
std::string exampleText(const data::Dataset& dataset) {
  const data::PartSpec& features = dataset.features().spec();
  const data::PartSpec& labels = dataset.labels().spec();
  if (features.dtype == DType::kUInt8 && labels.dtype == DType::kUInt8) return features.shape.str();
  return fmt::format("{} {} with {} {}", dtypeName(features.dtype), features.shape.str(),
                     dtypeName(labels.dtype), labels.shape.str());
}

std::string contentText(const data::Dataset& dataset) {
  Checksum checksum;
  for (const data::Part& part : dataset.parts())
    checksum.update(part.bytes().data(), part.bytes().size());
  return hexOf(checksum.value());
}

// Returns "framed 2, winograd 4: 1f3a...": the number of kernels for each way, and a checksum of
// all choices.
std::string waysText(const runtime::StepPlan& plan) {
  std::map<std::string, int> counts;
  Checksum checksum;
  for (const runtime::StepPlan::Row& row : plan.kernels) {
    if (row.way.empty()) continue;
    ++counts[row.way];
    const std::string line = fmt::format("{} {} {}\n", row.op, row.name, row.way);
    checksum.update(line.data(), line.size());
  }
  std::string text;
  for (const auto& [way, count] : counts)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", way, count);
  return text.empty() ? text : fmt::format("{}: {}", text, hexOf(checksum.value()));
}

// Splits a text that is too long for one message: some layers name very many others.
void addInPieces(const std::string& name, const std::string& text,
                 std::vector<arena::Setting>& settings) {
  constexpr size_t kPieceBytes = 3000;
  for (size_t at = 0; at == 0 || at < text.size(); at += kPieceBytes)
    settings.push_back(
        {at == 0 ? name : fmt::format("{} from byte {}", name, at), text.substr(at, kPieceBytes)});
}

}  // namespace

std::string datasetText(const data::Dataset& dataset) {
  return fmt::format("{} examples of {}, content {}", dataset.size(), exampleText(dataset),
                     contentText(dataset));
}

std::vector<arena::Setting> jobSettings(const cluster::TrainSpec& train,
                                        const data::Dataset& dataset,
                                        const runtime::StepPlan& plan) {
  std::vector<arena::Setting> settings = {
      {"data.train", fmt::format("{} examples of {}", dataset.size(), exampleText(dataset))},
      {"data.train: content", contentText(dataset)},
      {"data.seed", fmt::format("{}", train.data.seed)},
      {"data.batch_size", fmt::format("{}", train.data.batch_size)},
      {"model.input.shape", model::featuresText(train.model)},
      {"model.loss", train.model.loss.text()},
      {"environment DTF_WINOGRAD", runtime::winogradAllowed() ? "1" : "0"}};
  for (const model::CategoryInput& each : train.model.categories)
    settings.push_back({"model.input.categories." + each.name, model::categoryText(each)});
  if (const std::string ways = waysText(plan); !ways.empty()) settings.push_back({"kernels", ways});
  if (train.precision == Precision::kTf32) settings.push_back({"precision", "tf32"});
  if (train.precision == Precision::kBFloat16) settings.push_back({"precision", "bfloat16"});
  const SplitSetting split_setting = splitSettingOf(train.data.train);
  if (split_setting.fraction != 0)
    settings.push_back({"data.eval_split", fmt::format("{}", split_setting.fraction)});
  if (!split_setting.by.empty()) settings.push_back({"data.eval_split.by", split_setting.by});
  if (train.data.augment.any()) settings.push_back({"data.augment", train.data.augment.text()});
  for (size_t i = 0; i < train.model.layers.size(); ++i) {
    // Inner layers are settings of their own, so that each fits a message, and a line of the text
    // in a checkpoint.
    const std::vector<std::string> lines = split(model::layerText(train.model.layers[i]), '\n');
    for (size_t line = 0; line < lines.size(); ++line)
      addInPieces(line == 0 ? fmt::format("model.layers[{}]", i)
                            : fmt::format("model.layers[{}].{}", i, line),
                  lines[line], settings);
  }
  return settings;
}

}  // namespace dtf::train
