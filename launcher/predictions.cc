#include "launcher/predictions.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <string_view>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/model/inference_graph.h"
#include "common/model_files/npy.h"

namespace dtf::launcher {

namespace {

std::string npyOf(std::span<const float> outputs, int64_t units) {
  const auto count = static_cast<int64_t>(outputs.size());
  std::string bytes = model_files::npyHeader(DType::kFloat32, Shape{count / units, units});
  bytes.append(reinterpret_cast<const char*>(outputs.data()), outputs.size_bytes());
  return bytes;
}

// JSON has no word for what is no number.
std::string jsonNumber(float value) {
  return std::isfinite(value) ? fmt::format("{}", value) : "null";
}

// Makes a line of each example.
class LineWriter {
 public:
  LineWriter(PredictionFormat format, const model::ModelSpec& model)
      : format_(format), model_(model), name_(model::outputName(model)) {
    DTF_CHECK(format != PredictionFormat::kNpy);  // an array has no lines
  }

  std::string title(int64_t units) const {
    const bool classes = !model_.hasTargets();
    if (format_ == PredictionFormat::kText)
      return fmt::format("# example\t{}{}\n", classes ? "class\t" : "", name_);
    if (format_ != PredictionFormat::kCsv) return "";
    std::string title = classes ? "example,class" : "example";
    const std::string_view each = name_ == "probabilities" ? "probability" : "output";
    for (int64_t unit = 0; unit < units; ++unit) title += fmt::format(",{}_{}", each, unit);
    return title + "\n";
  }

  std::string line(int64_t example, std::span<const float> outputs) const {
    std::string predicted;  // nothing of a model that names no class
    if (!model_.hasTargets()) predicted = std::to_string(model::classOf(model_, outputs));
    const bool any = !predicted.empty();
    if (format_ == PredictionFormat::kText)
      return fmt::format("{}\t{}{}{:.6g}\n", example, predicted, any ? "\t" : "",
                         fmt::join(outputs, " "));
    if (format_ == PredictionFormat::kCsv)
      return fmt::format("{},{}{}{}\n", example, predicted, any ? "," : "",
                         fmt::join(outputs, ","));
    std::string numbers;
    for (const float output : outputs) numbers += (numbers.empty() ? "" : ",") + jsonNumber(output);
    return fmt::format(R"({{"event":"prediction","example":{}{}{},"{}":[{}]}})", example,
                       any ? R"(,"class":)" : "", predicted, name_, numbers) +
           "\n";
  }

 private:
  const PredictionFormat format_;
  const model::ModelSpec& model_;
  const std::string_view name_;
};

}  // namespace

PredictionFormat predictionFormat(const std::optional<std::filesystem::path>& file, bool json) {
  if (!file) return json ? PredictionFormat::kJson : PredictionFormat::kText;
  const std::string ending = file->extension().string();
  if (ending == ".txt") return PredictionFormat::kText;
  if (ending == ".jsonl") return PredictionFormat::kJson;
  if (ending == ".csv") return PredictionFormat::kCsv;
  if (ending == ".npy") return PredictionFormat::kNpy;
  throw Error(
      ErrorCode::kUsage,
      fmt::format("--output {}: the ending says what is written: .txt, .jsonl, .csv or .npy",
                  file->string()));
}

std::string encodePredictions(PredictionFormat format, const model::ModelSpec& model,
                              std::span<const float> outputs, int64_t units) {
  DTF_CHECK(units > 0 && outputs.size() % static_cast<size_t>(units) == 0);
  if (format == PredictionFormat::kNpy) return npyOf(outputs, units);
  const LineWriter writer(format, model);
  std::string text = writer.title(units);
  const auto width = static_cast<size_t>(units);
  for (size_t at = 0; at < outputs.size(); at += width)
    text += writer.line(static_cast<int64_t>(at / width), outputs.subspan(at, width));
  return text;
}

}  // namespace dtf::launcher
