#include "launcher/output.h"

#include <nlohmann/json.hpp>

#include "common/base/print.h"
#include "common/base/wall_time.h"
#include "launcher/output_queue.h"

namespace dtf::launcher {

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
