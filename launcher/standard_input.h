#pragma once

// Standard input as a file, for readers that open a file by its name, more than once.

#include <filesystem>

namespace dtf::launcher {

// Returns whether `input`, as a user has named it, is standard input: "-" or "/dev/stdin".
bool isStandardInput(const std::filesystem::path& input);

// Reads standard input to its end, and replaces the descriptor by a file without a name that has
// the same bytes. A file that is redirected from its beginning stays as it is. Returns
// "/dev/stdin", which then opens that file at its beginning, as often as it is opened.
// Blocks: until the writer has closed the other end.
// Errors: kBadData for more than 16 GiB; kCannotWrite without room for the bytes.
std::filesystem::path wholeStandardInput();

}  // namespace dtf::launcher
