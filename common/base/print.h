#pragma once

// A program's output on stdout: its reply to `--help`, the report of a job.

#include <string_view>

namespace dtf {

// Writes all of `text` to stdout at once, through printableLines().
// Blocks: on the reader of stdout.
// Errors: kCannotWrite if stdout can't be written (a full disk): a lost result is no success.
void print(std::string_view text);

}  // namespace dtf
