#include "common/train/class_report.h"

#include <fmt/core.h>

#include <algorithm>
#include <vector>

#include "common/base/text.h"
#include "common/base/text_table.h"

namespace dtf::train {

namespace {

constexpr size_t kListedMax = 50;       // classes, for people
constexpr size_t kMatrixMax = 20;       // classes of a matrix for people
constexpr size_t kJsonMatrixMax = 100;  // classes of a matrix for programs
constexpr size_t kPairsMax = 20;
constexpr size_t kNameBytesMax = 24;

using Lines = std::vector<std::vector<std::string>>;

std::string nameOf(int64_t index, std::span<const std::string> names) {
  if (static_cast<size_t>(index) >= names.size()) return std::to_string(index);
  const std::string& name = names[static_cast<size_t>(index)];
  return name.size() <= kNameBytesMax ? name : name.substr(0, kNameBytesMax - 3) + "...";
}

std::vector<std::string> scoresLine(const std::string& name, const ClassScores& scores,
                                    int64_t support) {
  return {"  " + name, fmt::format("{:.4f}", scores.precision),
          fmt::format("{:.4f}", scores.recall), fmt::format("{:.4f}", scores.f1),
          std::to_string(support)};
}

std::vector<ClassFigures> listed(const ClassReport& report) {
  std::vector<ClassFigures> classes = report.classes;
  if (classes.size() <= kListedMax) return classes;
  std::ranges::stable_sort(classes, {}, [](const ClassFigures& each) { return each.scores.f1; });
  classes.resize(kListedMax);
  return classes;
}

std::string scoresText(const ClassReport& report, std::span<const std::string> names) {
  Lines lines = {{"  class", "precision", "recall", "f1", "support"}};
  for (const ClassFigures& each : listed(report))
    lines.push_back(scoresLine(nameOf(each.index, names), each.scores, each.support));
  if (report.classes.size() > kListedMax)
    lines.push_back({fmt::format("  ({} more, with a higher f1: --json prints all)",
                                 report.classes.size() - kListedMax)});
  lines.push_back(scoresLine("macro average", report.macro, report.examples));
  lines.push_back(scoresLine("weighted average", report.weighted, report.examples));
  return alignedText(lines);
}

std::string matrixText(const ConfusionMatrix& matrix, const ClassReport& report,
                       std::span<const std::string> names) {
  Lines lines = {{"  class"}};
  for (const ClassFigures& each : report.classes) lines[0].push_back(nameOf(each.index, names));
  for (const ClassFigures& truth : report.classes) {
    lines.push_back({"  " + nameOf(truth.index, names)});
    for (const ClassFigures& predicted : report.classes)
      lines.back().push_back(std::to_string(matrix.count(truth.index, predicted.index)));
  }
  return "  confusion: a row for each class, a column for each predicted class\n" +
         alignedText(lines);
}

std::string pairsText(const ConfusionMatrix& matrix, std::span<const std::string> names) {
  Lines lines = {{"  class", "predicted", "examples"}};
  for (const ConfusedPair& pair : matrix.mostConfused(kPairsMax))
    lines.push_back({"  " + nameOf(pair.truth, names), nameOf(pair.predicted, names),
                     std::to_string(pair.count)});
  return lines.size() == 1 ? "" : "  the most confused classes\n" + alignedText(lines);
}

Json scoresJson(const ClassScores& scores) {
  return {{"precision", scores.precision}, {"recall", scores.recall}, {"f1", scores.f1}};
}

Json classJson(const ClassFigures& each, std::span<const std::string> names) {
  const auto index = static_cast<size_t>(each.index);
  Json json = {{"class", each.index},
               {"name", index < names.size() ? Json(names[index]) : Json(nullptr)}};
  json.update(scoresJson(each.scores));
  json["support"] = each.support;
  json["predicted"] = each.predicted;
  return json;
}

Json matrixJson(const ConfusionMatrix& matrix, const ClassReport& report) {
  Json classes = Json::array(), rows = Json::array();
  for (const ClassFigures& truth : report.classes) {
    classes.push_back(truth.index);
    Json row = Json::array();
    for (const ClassFigures& predicted : report.classes)
      row.push_back(matrix.count(truth.index, predicted.index));
    rows.push_back(row);
  }
  return {{"classes", classes}, {"matrix", rows}};
}

}  // namespace

std::string classReportText(const ConfusionMatrix& matrix, std::span<const std::string> names) {
  const ClassReport report = matrix.report();
  std::string text = scoresText(report, names);
  if (report.unpredicted > 0)
    text += fmt::format("  {} without a predicted class: an output is no number\n",
                        amountText(static_cast<uint64_t>(report.unpredicted), "example"));
  return text + (report.classes.size() <= kMatrixMax ? matrixText(matrix, report, names)
                                                     : pairsText(matrix, names));
}

Json classReportJson(const ConfusionMatrix& matrix, std::span<const std::string> names) {
  const ClassReport report = matrix.report();
  Json classes = Json::array(), pairs = Json::array();
  for (const ClassFigures& each : report.classes) classes.push_back(classJson(each, names));
  for (const ConfusedPair& pair : matrix.mostConfused(kPairsMax))
    pairs.push_back(
        Json{{"class", pair.truth}, {"predicted", pair.predicted}, {"examples", pair.count}});
  return {{"accuracy", report.accuracy},
          {"examples", report.examples},
          {"unpredicted", report.unpredicted},
          {"macro", scoresJson(report.macro)},
          {"weighted", scoresJson(report.weighted)},
          {"classes", classes},
          {"confusion",
           report.classes.size() <= kJsonMatrixMax ? matrixJson(matrix, report) : Json(nullptr)},
          {"most_confused", pairs}};
}

}  // namespace dtf::train
