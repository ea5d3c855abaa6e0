#include "launcher/output.h"

#include <cerrno>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "common/base/error.h"
#include "launcher/output_queue.h"
#include "launcher/wall_time.h"

namespace dtf::launcher {

void print(const std::string& text) {
  if (std::fputs(text.c_str(), stdout) < 0 || std::fflush(stdout) != 0)
    throw Error(ErrorCode::kCannotWrite, "cannot write to stdout: " + errnoText(errno));
}

std::string eventLine(const char* event, const nlohmann::ordered_json& fields) {
  nlohmann::ordered_json line = {{"schema", 1}, {"event", event}, {"time", wallTimeText()}};
  line.update(fields);
  return line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

void printEvent(const char* event, const nlohmann::ordered_json& fields) {
  print(eventLine(event, fields));
}

bool printBounded(int fd, std::string_view text, Duration patience) {
  OutputQueue queue(fd);
  while (!text.empty()) {
    const std::string_view part = text.substr(0, OutputQueue::kBytesMax);
    if (!queue.push(part) || !queue.finish(patience)) return false;
    text.remove_prefix(part.size());
  }
  return true;
}

}  // namespace dtf::launcher
