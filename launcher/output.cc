#include "launcher/output.h"

#include <cerrno>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "common/base/error.h"
#include "launcher/wall_time.h"

namespace dtf::launcher {

void print(const std::string& text) {
  if (std::fputs(text.c_str(), stdout) < 0 || std::fflush(stdout) != 0)
    throw Error(ErrorCode::kCannotWrite, "cannot write to stdout: " + errnoText(errno));
}

void printEvent(const char* event, const nlohmann::ordered_json& fields) {
  nlohmann::ordered_json line = {{"schema", 1}, {"event", event}, {"time", wallTimeText()}};
  line.update(fields);
  print(line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
}

}  // namespace dtf::launcher
