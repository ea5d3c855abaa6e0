#include "launcher/output.h"

#include "common/base/print.h"
#include "common/base/text.h"
#include "common/base/wall_time.h"
#include "launcher/console.h"
#include "launcher/output_queue.h"
#include "launcher/painted.h"

namespace dtf::launcher {

std::string eventLine(const char* event, const Json& fields) {
  Json line = {{"schema", 1}, {"event", event}, {"time", wallTimeText()}};
  line.update(fields);
  return line.dumpAscii() + "\n";
}

void printEvent(const char* event, const Json& fields) {
  print(eventLine(event, fields));
}

bool printBounded(int fd, std::string_view said, Duration patience) {
  std::string lines = printableLines(said);
  if (useColor(ColorMode::kAuto, fd)) lines = painted(lines);
  std::string_view text = lines;
  OutputQueue queue(fd);
  while (!text.empty()) {
    const std::string_view part = text.substr(0, OutputQueue::kBytesMax);
    if (!queue.push(part) || !queue.finish(patience)) return false;
    text.remove_prefix(part.size());
  }
  return true;
}

}  // namespace dtf::launcher
