#include "launcher/network/network_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace dtf::launcher {

namespace {

constexpr size_t kColumns = 6;
using Cells = std::array<std::string, kColumns>;

Cells cellsOf(const NetworkRow& row) {
  const bool reached = row.reached();
  return {row.from,
          row.to,
          row.address,
          row.interface + (row.is_files ? "" : " (not in the file)"),
          reached ? rateText(row.measured.bytes_per_second) : "-",
          reached ? fmt::format("{:.0f}", row.measured.round_trip_us) : "-"};
}

}  // namespace

std::string rateText(double bytes_per_second) {
  const double megabytes = bytes_per_second / 1e6;
  const int decimals = megabytes < 1 ? 2 : megabytes < 100 ? 1 : 0;
  return fmt::format("{:.{}f}", megabytes, decimals);
}

std::string networkTable(const std::vector<NetworkRow>& rows) {
  std::vector<Cells> lines = {{"from", "to", "address", "interface", "MB/s", "round trip us"}};
  for (const NetworkRow& row : rows) lines.push_back(cellsOf(row));
  std::array<size_t, kColumns> widths{};
  for (const Cells& cells : lines)
    for (size_t i = 0; i < kColumns; ++i) widths[i] = std::max(widths[i], cells[i].size());
  constexpr size_t kFirstNumber = 4;  // numbers stand right
  std::string text;
  for (const Cells& cells : lines) {
    std::string line;
    for (size_t i = 0; i < kColumns; ++i)
      line += i < kFirstNumber ? fmt::format("{:<{}}  ", cells[i], widths[i])
                               : fmt::format("{:>{}}  ", cells[i], widths[i]);
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  for (const NetworkRow& row : rows)
    if (!row.reached() && !row.is_files)
      text += fmt::format("{} does not reach {} of {}: {}\n", row.from, row.address, row.to,
                          row.measured.problem);
  return text;
}

Json networkJson(const std::vector<NetworkRow>& rows, const std::vector<std::string>& warnings) {
  Json pairs = Json::array();
  for (const NetworkRow& row : rows) {
    Json pair = {{"from", row.from},
                 {"to", row.to},
                 {"address", row.address},
                 {"interface", row.interface},
                 {"in_file", row.is_files}};
    if (row.reached()) {
      pair["bytes_per_second"] = std::round(row.measured.bytes_per_second);
      pair["round_trip_us"] = row.measured.round_trip_us;
    } else {
      pair["problem"] = row.measured.problem;
    }
    pairs.push_back(std::move(pair));
  }
  return {{"pairs", pairs}, {"warnings", warnings}};
}

}  // namespace dtf::launcher
