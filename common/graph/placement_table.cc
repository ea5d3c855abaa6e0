// The table of placer.h, apart from the decisions.

#include <algorithm>
#include <array>
#include <cstdio>

#include "common/base/check.h"
#include "common/base/text.h"
#include "common/graph/placer.h"

namespace dtf::graph {
namespace {

std::string percentText(uint64_t part, uint64_t whole) {
  std::array<char, 32> text{};
  const double percent =
      whole == 0 ? 0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
  std::snprintf(text.data(), text.size(), "%.1f %%", percent);
  return text.data();
}

// Returns "/job:ps/task:0" or "/job:ps/task:0..2 (split in 3)": tasks, without replicas and CPU
// numbers.
std::string whereText(const Placement& placement, const PlacedVariable& variable,
                      const ShardHosts& hosts) {
  const std::optional<TaskId> task = placement.device(variable.node).taskId();
  DTF_CHECK_MSG(task.has_value(), variable.name);
  const std::string first = (task->job == JobKind::kPs ? hosts.of(task->index) : *task).device();
  if (variable.parts.size() < 2) return first;
  return first + ".." + std::to_string(hosts.of(variable.parts.back().ps_task).index) +
         " (split in " + std::to_string(variable.parts.size()) + ")";
}

// Returns "30.6 KiB", or "at most 3136 rows, 61.2 KiB".
std::string gradientText(const PlacedVariable& variable) {
  const std::string bytes = bytesText(variable.gradientBytesMax());
  if (!variable.gradient_rows_max) return bytes;
  return "at most " + std::to_string(*variable.gradient_rows_max) + " rows, " + bytes;
}

using Row = std::array<std::string, 5>;

std::string layOut(const std::vector<Row>& rows) {
  std::array<size_t, 5> widths{};
  for (const Row& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const Row& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) {
      if (widths[i] == 0) continue;
      const std::string padding(widths[i] - row[i].size(), ' ');
      const bool number = i == 2;
      const bool last = i + 1 == row.size();
      text += number ? padding + row[i] : row[i] + (last ? "" : padding);
      if (!last) text += "  ";
    }
    while (text.ends_with(' ')) text.pop_back();
    text += '\n';
  }
  return text;
}

}  // namespace

std::string placementTable(const Placement& placement, const ShardHosts& hosts) {
  const bool has_rows = std::ranges::any_of(
      placement.variables,
      [](const PlacedVariable& variable) { return variable.gradient_rows_max.has_value(); });
  std::vector<Row> rows = {{"variable", "shape", "size", has_rows ? "gradient" : "", "device"}};
  std::vector<uint64_t> ps_bytes(placement.ps_tasks);
  uint64_t total = 0;
  for (const PlacedVariable& variable : placement.variables) {
    rows.push_back({variable.name, variable.shape.str(), bytesText(variable.bytes()),
                    has_rows ? gradientText(variable) : "", whereText(placement, variable, hosts)});
    total += variable.bytes();
    for (const VariablePart& part : variable.parts) {
      DTF_CHECK_MSG(part.ps_task < ps_bytes.size(), variable.name);
      ps_bytes[part.ps_task] += part.count * sizeof(float);
    }
  }
  for (uint32_t ps = 0; ps < placement.ps_tasks; ++ps) {
    rows.push_back(
        {hosts.of(ps).name(), "", bytesText(ps_bytes[ps]), "", percentText(ps_bytes[ps], total)});
  }
  rows.push_back({"total", "", bytesText(total), "",
                  std::to_string(placement.variables.size()) + " variable(s)"});
  return layOut(rows);
}

}  // namespace dtf::graph
