#include "launcher/predictions.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <string_view>
#include <vector>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/base/json.h"
#include "common/model/inference_graph.h"
#include "common/model_files/npy.h"

namespace dtf::launcher {

namespace {

// Calls `each` with the number of each record and the place of its outputs, or what is wrong.
template <class Each>
void forRecords(int64_t good, std::span<const data::BadRecord> unread, const Each& each) {
  auto bad = unread.begin();
  for (int64_t record = 0, example = 0; example < good || bad != unread.end(); ++record) {
    if (bad != unread.end() && bad->index == record)
      each(record, std::nullopt, (bad++)->reason);
    else
      each(record, std::optional(example++), std::string());
  }
}

std::string npyOf(std::span<const float> outputs, int64_t units,
                  std::span<const data::BadRecord> unread) {
  const auto good = static_cast<int64_t>(outputs.size()) / units;
  const auto count = good + static_cast<int64_t>(unread.size());
  std::string bytes = model_files::npyHeader(DType::kFloat32, Shape{count, units});
  const std::vector<float> nothing(static_cast<size_t>(units),
                                   std::numeric_limits<float>::quiet_NaN());
  forRecords(good, unread, [&](int64_t, std::optional<int64_t> example, const std::string&) {
    const float* const from = example ? outputs.data() + *example * units : nothing.data();
    bytes.append(reinterpret_cast<const char*>(from), static_cast<size_t>(units) * sizeof(float));
  });
  return bytes;
}

// JSON has no word for what is no number.
std::string jsonNumber(float value) {
  return std::isfinite(value) ? fmt::format("{}", value) : "null";
}

// Names may be any bytes.
std::string jsonText(const std::string& name) {
  return Json(name).dumpAscii();
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

// A number as JSON has it; else a text.
std::string jsonField(const std::string& field) {
  const Json number = Json::parseOrNull(field);
  return number.isNumber() ? field : jsonText(field);
}

// The contents of a line; unknown texts are empty.
struct Line {
  int64_t record = 0;
  std::string file;
  std::span<const std::string> kept;
  std::span<const std::string> truths;
  std::string predicted, called;  // the class
  std::span<const float> outputs;
  std::string error;
};

// Makes a line of each record.
class LineWriter {
 public:
  LineWriter(PredictionFormat format, const model::ModelSpec& model, const PredictionNames& names,
             int64_t examples, int64_t units)
      : format_(format),
        model_(model),
        names_(names),
        name_(model::outputName(model)),
        units_(units),
        truths_(examples == 0 ? 0 : names.truths.size() / static_cast<size_t>(examples)) {
    DTF_CHECK(format != PredictionFormat::kNpy);  // an array has no lines
  }

  // A line has one column, and one member, of each name.
  void checkKept() const {
    std::set<std::string> taken = {"event", "truth", "error", "probability_of", std::string(name_)};
    for (const std::vector<std::string>& names : {columnsBefore({}), columnsOfOutputs()})
      taken.insert(names.begin(), names.end());
    for (const std::string& name : keptNames())
      if (!taken.insert(name).second)
        throw Error(ErrorCode::kUsage,
                    fmt::format("--keep {0}: each line has a '{0}' already: give the column of the "
                                "input another name",
                                name));
  }

  std::string title() const {
    if (format_ == PredictionFormat::kJson) return "";
    std::vector<std::string> columns = columnsBefore(keptNames());
    if (format_ == PredictionFormat::kText) {
      columns.push_back(ofClassOne() ? fmt::format("p({})", classOne()) : std::string(name_));
      for (std::string& column : columns) column = plainText(column);
      return fmt::format("# {}\n", fmt::join(columns, "\t"));
    }
    const std::vector<std::string> outputs = columnsOfOutputs();
    columns.insert(columns.end(), outputs.begin(), outputs.end());
    if (!names_.unread.empty()) columns.emplace_back("error");
    for (std::string& column : columns) column = csvText(column);
    return fmt::format("{}\n", fmt::join(columns, ","));
  }

  // `example`: the place of its outputs; none: it couldn't be read.
  std::string line(int64_t record, std::optional<int64_t> example, std::span<const float> outputs,
                   const std::string& error) const {
    Line line{record, {}, {}, {}, {}, {}, {}, error};
    if (!names_.files.empty()) line.file = names_.files[static_cast<size_t>(record)].string();
    if (const size_t kept = keptNames().size(); kept > 0)
      line.kept = std::span(names_.kept->fields).subspan(static_cast<size_t>(record) * kept, kept);
    if (example) {
      const auto at = static_cast<size_t>(*example);
      line.truths = names_.truths.subspan(at * truths_, truths_);
      line.outputs = outputs.subspan(at * static_cast<size_t>(units_), static_cast<size_t>(units_));
    }
    if (example && !model_.hasTargets()) {
      const int64_t index = model::classOf(model_, line.outputs);
      line.predicted = std::to_string(index);
      // A layer may have more units than the data have classes.
      if (static_cast<size_t>(index) < names_.classes.size())
        line.called = names_.classes[static_cast<size_t>(index)];
    }
    switch (format_) {
      case PredictionFormat::kJson:
        return jsonOf(line);
      case PredictionFormat::kText:
        return textOf(line);
      case PredictionFormat::kCsv:
        return csvOf(line);
      case PredictionFormat::kNpy:
        break;
    }
    DTF_CHECK_MSG(false, "an array has no lines");
  }

 private:
  bool namesClasses() const { return !model_.hasTargets() && !names_.classes.empty(); }

  // One unit gives the probability of class 1 alone.
  bool ofClassOne() const {
    return units_ == 1 && !model_.hasTargets() && name_ == "probabilities";
  }
  std::string classOne() const { return names_.classes.size() > 1 ? names_.classes[1] : "1"; }

  std::span<const std::string> keptNames() const {
    return names_.kept == nullptr ? std::span<const std::string>() : names_.kept->names;
  }

  // The names of the columns before the outputs.
  std::vector<std::string> columnsBefore(std::span<const std::string> kept) const {
    std::vector<std::string> columns = {"example"};
    if (!names_.files.empty()) columns.emplace_back("file");
    columns.insert(columns.end(), kept.begin(), kept.end());
    for (size_t i = 0; i < truths_; ++i)
      columns.push_back(truths_ == 1 ? "truth" : fmt::format("truth_{}", i));
    if (!model_.hasTargets()) columns.emplace_back("class");
    if (namesClasses()) columns.emplace_back("class_name");
    return columns;
  }

  std::vector<std::string> columnsOfOutputs() const {
    std::vector<std::string> columns;
    for (int64_t unit = 0; unit < units_; ++unit)
      columns.push_back(columnOf(static_cast<size_t>(ofClassOne() ? 1 : unit)));
    return columns;
  }

  // Of an output, or, of class 1 alone, of that class.
  std::string columnOf(size_t unit) const {
    if (model_.hasTargets() && names_.targets.size() == static_cast<size_t>(units_) &&
        !isColumnBefore(names_.targets[unit]))
      return names_.targets[unit];
    if (name_ != "probabilities") return fmt::format("output_{}", unit);
    if (namesClasses() && unit < names_.classes.size())
      return fmt::format("p({})", names_.classes[unit]);
    return fmt::format("probability_{}", unit);
  }

  bool isColumnBefore(const std::string& name) const {
    const std::vector<std::string> before = columnsBefore(keptNames());
    return name == "error" || std::find(before.begin(), before.end(), name) != before.end();
  }

  // The columns before the outputs.
  std::vector<std::string> fieldsOf(const Line& line) const {
    std::vector<std::string> fields = {std::to_string(line.record)};
    if (!names_.files.empty()) fields.push_back(line.file);
    fields.insert(fields.end(), line.kept.begin(), line.kept.end());
    for (size_t i = 0; i < truths_; ++i)
      fields.push_back(line.truths.empty() ? std::string() : line.truths[i]);
    if (!model_.hasTargets()) fields.push_back(line.predicted);
    if (namesClasses()) fields.push_back(line.called);
    return fields;
  }

  std::string textOf(const Line& line) const {
    std::string row;
    for (const std::string& field : fieldsOf(line)) row += plainText(field) + "\t";
    if (!line.error.empty()) return row + "error: " + plainText(line.error) + "\n";
    return row + fmt::format("{:.6g}\n", fmt::join(line.outputs, " "));
  }

  std::string csvOf(const Line& line) const {
    std::string row;
    for (const std::string& field : fieldsOf(line)) row += csvText(field) + ",";
    row += line.error.empty() ? fmt::format("{}", fmt::join(line.outputs, ","))
                              : std::string(static_cast<size_t>(units_ - 1), ',');
    if (!names_.unread.empty()) row += "," + csvText(line.error);
    return row + "\n";
  }

  std::string jsonOf(const Line& line) const {
    std::string text = fmt::format(R"({{"event":"prediction","example":{})", line.record);
    if (!names_.files.empty()) text += R"(,"file":)" + jsonText(line.file);
    for (size_t i = 0; i < line.kept.size(); ++i)
      text += "," + jsonText(keptNames()[i]) + ":" + jsonField(line.kept[i]);
    if (!line.error.empty()) return text + R"(,"error":)" + jsonText(line.error) + "}\n";
    if (truths_ == 1) text += R"(,"truth":)" + jsonField(line.truths[0]);
    if (truths_ > 1) {
      std::vector<std::string> fields;
      for (const std::string& truth : line.truths) fields.push_back(jsonField(truth));
      text += fmt::format(R"(,"truth":[{}])", fmt::join(fields, ","));
    }
    if (!line.predicted.empty()) text += R"(,"class":)" + line.predicted;
    if (namesClasses()) text += R"(,"class_name":)" + jsonText(line.called);
    std::string numbers;
    for (const float output : line.outputs)
      numbers += (numbers.empty() ? "" : ",") + jsonNumber(output);
    if (ofClassOne()) text += R"(,"probability_of":)" + jsonField(classOne());
    return text + fmt::format(R"(,"{}":[{}]}})", name_, numbers) + "\n";
  }

  const PredictionFormat format_;
  const model::ModelSpec& model_;
  const PredictionNames names_;
  const std::string_view name_;
  const int64_t units_;
  const size_t truths_;  // of each example
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
      fmt::format("--output {}: unknown format; end the name with .txt, .jsonl, .csv or .npy",
                  file->string()));
}

void checkKeptNames(PredictionFormat format, const model::ModelSpec& model, int64_t examples,
                    int64_t units, const PredictionNames& names) {
  if (names.kept == nullptr || names.kept->names.empty()) return;
  if (format == PredictionFormat::kNpy)
    throw Error(ErrorCode::kUsage,
                "--keep is not for an array: name a --output FILE.csv, .jsonl or .txt");
  LineWriter(format, model, names, examples, units).checkKept();
}

std::string encodePredictions(PredictionFormat format, const model::ModelSpec& model,
                              std::span<const float> outputs, int64_t units,
                              const PredictionNames& names) {
  DTF_CHECK(units > 0 && outputs.size() % static_cast<size_t>(units) == 0);
  const auto examples = static_cast<int64_t>(outputs.size()) / units;
  checkKeptNames(format, model, examples, units, names);
  if (format == PredictionFormat::kNpy) return npyOf(outputs, units, names.unread);
  const auto records = static_cast<size_t>(examples) + names.unread.size();
  DTF_CHECK(names.kept == nullptr ||
            names.kept->fields.size() == names.kept->names.size() * records);
  DTF_CHECK(names.files.empty() || names.files.size() == records);
  const LineWriter writer(format, model, names, examples, units);
  std::string text = writer.title();
  forRecords(examples, names.unread,
             [&](int64_t record, std::optional<int64_t> example, const std::string& error) {
               text += writer.line(record, example, outputs, error);
             });
  return text;
}

}  // namespace dtf::launcher
