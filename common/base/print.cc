#include "common/base/print.h"

#include <cerrno>
#include <cstdio>

#include "common/base/error.h"

namespace dtf {

void print(std::string_view text) {
  const bool whole = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (!whole || std::fflush(stdout) != 0)
    throw Error(ErrorCode::kCannotWrite, "cannot write to stdout: " + errnoText(errno));
}

}  // namespace dtf
