#include "common/base/call_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <set>
#include <string>

#include "common/base/check.h"
#include "common/base/mutex.h"

namespace dtf {

namespace {

const char* path() {
  static const char* const name = std::getenv("DTF_CALL_LOG");
  return name;
}

// Appends a line with one write(): many processes share the file.
void append(const std::string& line) {
  const int fd = ::open(path(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
  DTF_CHECK_MSG(fd >= 0, "DTF_CALL_LOG names a file that can't be written");
  DTF_CHECK(::write(fd, line.data(), line.size()) == static_cast<ssize_t>(line.size()));
  ::close(fd);
}

}  // namespace

bool callLogWanted() {
  return path() != nullptr;
}

void logCall(std::string_view line) {
  DTF_CHECK(callLogWanted() && !line.empty() && line.find('\n') == line.npos);
  static Mutex mu;
  static std::set<std::string, std::less<>>& written = *new std::set<std::string, std::less<>>;
  MutexLock lock(mu);
  if (written.insert(std::string(line)).second) append(std::string(line) + '\n');
}

}  // namespace dtf
