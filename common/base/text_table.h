#pragma once

#include <string>
#include <vector>

namespace dtf {

// Returns the rows as lines of aligned columns, two spaces between them. Cells are shown as
// printable() text. A row may have fewer cells than others; its last cell is not padded.
std::string alignedText(const std::vector<std::vector<std::string>>& rows);

}  // namespace dtf
