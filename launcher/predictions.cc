#include "launcher/predictions.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
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

// Names may be any bytes.
std::string jsonText(const std::string& name) {
  return nlohmann::json(name).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string csvText(const std::string& name) {
  if (name.find_first_of(",\"\r\n") == std::string::npos) return name;
  std::string quoted = "\"";
  for (const char each : name) quoted += each == '"' ? "\"\"" : std::string(1, each);
  return quoted + "\"";
}

// Without what would end a column or a line.
std::string plainText(std::string name) {
  std::replace_if(
      name.begin(), name.end(), [](unsigned char each) { return each < ' '; }, '?');
  return name;
}

// Makes a line of each example.
class LineWriter {
 public:
  LineWriter(PredictionFormat format, const model::ModelSpec& model, const PredictionNames& names)
      : format_(format), model_(model), names_(names), name_(model::outputName(model)) {
    DTF_CHECK(format != PredictionFormat::kNpy);  // an array has no lines
  }

  std::string title(int64_t units) const {
    if (format_ == PredictionFormat::kJson) return "";
    const char* const end = format_ == PredictionFormat::kText ? "\t" : ",";
    std::string title = format_ == PredictionFormat::kText ? "# example" : "example";
    if (!names_.files.empty()) title += std::string(end) + "file";
    if (!model_.hasTargets()) title += std::string(end) + "class";
    if (namesClasses()) title += std::string(end) + "class_name";
    if (format_ == PredictionFormat::kText) return title + end + std::string(name_) + "\n";
    const std::string_view each = name_ == "probabilities" ? "probability" : "output";
    for (int64_t unit = 0; unit < units; ++unit) title += fmt::format(",{}_{}", each, unit);
    return title + "\n";
  }

  std::string line(int64_t example, std::span<const float> outputs) const {
    const std::string file =
        names_.files.empty() ? "" : names_.files[static_cast<size_t>(example)].string();
    std::string predicted, called;  // nothing of a model that names no class
    if (!model_.hasTargets()) {
      const int64_t index = model::classOf(model_, outputs);
      predicted = std::to_string(index);
      // A layer may have more units than the data have classes.
      if (static_cast<size_t>(index) < names_.classes.size())
        called = names_.classes[static_cast<size_t>(index)];
    }
    return format_ == PredictionFormat::kJson ? jsonLine(example, file, predicted, called, outputs)
                                              : rowOf(example, file, predicted, called, outputs);
  }

 private:
  bool namesClasses() const { return !model_.hasTargets() && !names_.classes.empty(); }

  std::string rowOf(int64_t example, const std::string& file, const std::string& predicted,
                    const std::string& called, std::span<const float> outputs) const {
    const bool text = format_ == PredictionFormat::kText;
    const char* const end = text ? "\t" : ",";
    std::string row = std::to_string(example) + end;
    const auto add = [&](const std::string& name) {
      row += (text ? plainText(name) : csvText(name)) + end;
    };
    if (!names_.files.empty()) add(file);
    if (!predicted.empty()) add(predicted);
    if (namesClasses()) add(called);
    return row + (text ? fmt::format("{:.6g}\n", fmt::join(outputs, " "))
                       : fmt::format("{}\n", fmt::join(outputs, ",")));
  }

  std::string jsonLine(int64_t example, const std::string& file, const std::string& predicted,
                       const std::string& called, std::span<const float> outputs) const {
    std::string line = fmt::format(R"({{"event":"prediction","example":{})", example);
    if (!names_.files.empty()) line += R"(,"file":)" + jsonText(file);
    if (!predicted.empty()) line += R"(,"class":)" + predicted;
    if (namesClasses()) line += R"(,"class_name":)" + jsonText(called);
    std::string numbers;
    for (const float output : outputs) numbers += (numbers.empty() ? "" : ",") + jsonNumber(output);
    return line + fmt::format(R"(,"{}":[{}]}})", name_, numbers) + "\n";
  }

  const PredictionFormat format_;
  const model::ModelSpec& model_;
  const PredictionNames names_;
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
                              std::span<const float> outputs, int64_t units,
                              const PredictionNames& names) {
  DTF_CHECK(units > 0 && outputs.size() % static_cast<size_t>(units) == 0);
  if (format == PredictionFormat::kNpy) return npyOf(outputs, units);
  DTF_CHECK(names.files.empty() ||
            names.files.size() * static_cast<size_t>(units) == outputs.size());
  const LineWriter writer(format, model, names);
  std::string text = writer.title(units);
  const auto width = static_cast<size_t>(units);
  for (size_t at = 0; at < outputs.size(); at += width)
    text += writer.line(static_cast<int64_t>(at / width), outputs.subspan(at, width));
  return text;
}

}  // namespace dtf::launcher
