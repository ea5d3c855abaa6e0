#pragma once

// What a program prints on stdout: its answer to `--help`, the report of a job.

#include <string_view>

namespace dtf {

// Writes all of `text` to stdout, at once, as printableLines().
// Blocks: on who reads stdout.
// Errors: kCannotWrite when stdout does not take it (a full disk): a result that nobody gets is no
// success.
void print(std::string_view text);

}  // namespace dtf
