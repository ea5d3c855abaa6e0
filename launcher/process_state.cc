#include "launcher/process_state.h"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <string>

namespace dtf::launcher {

bool isSuspended(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string stat;
  std::getline(file, stat);
  const size_t end = stat.rfind(") ");  // the name before it may hold anything
  if (end == std::string::npos || end + 2 >= stat.size()) return false;
  return stat[end + 2] == 'T' || stat[end + 2] == 't';
}

bool isAlive(pid_t pid) {
  return pid > 0 && (::kill(pid, 0) == 0 || errno == EPERM);
}

bool isOutOfReach(pid_t pid) {
  struct stat owner {};
  const bool is_there = ::stat(("/proc/" + std::to_string(pid)).c_str(), &owner) == 0;
  return is_there && ::geteuid() != 0 && owner.st_uid != ::geteuid();
}

}  // namespace dtf::launcher
