#include "common/base/text_table.h"

#include <algorithm>

#include "common/base/text.h"

namespace dtf {

std::string alignedText(const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> widths;
  for (const std::vector<std::string>& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i)
      widths[i] = std::max(widths[i], printable(row[i]).size());
  }
  std::string text;
  for (const std::vector<std::string>& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string cell = printable(row[i]);
      line += (i == 0 ? "" : "  ") + cell;
      if (i + 1 < row.size()) line.append(widths[i] - cell.size(), ' ');
    }
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

}  // namespace dtf
