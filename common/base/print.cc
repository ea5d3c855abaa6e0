#include "common/base/print.h"

#include <cerrno>
#include <cstdio>

#include "common/base/error.h"
#include "common/base/text.h"

namespace dtf {

void print(std::string_view text) {
  const std::string lines = printableLines(text);
  const bool whole = std::fwrite(lines.data(), 1, lines.size(), stdout) == lines.size();
  if (!whole || std::fflush(stdout) != 0)
    throw Error(ErrorCode::kCannotWrite, "cannot write to stdout: " + errnoText(errno));
}

}  // namespace dtf
