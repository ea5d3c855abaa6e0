#include "common/base/process_identity.h"

#include <unistd.h>

#include <array>
#include <fstream>
#include <sstream>

namespace dtf {

namespace {

std::string hostName() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

std::string lineOf(const std::string& file) {
  std::ifstream stream(file);
  std::string line;
  std::getline(stream, line);
  return line;
}

// Returns field 22 of /proc/PID/stat (proc(5)). The second field, a name in brackets, may contain
// anything.
int64_t startOf(pid_t pid) {
  const std::string stat = lineOf("/proc/" + std::to_string(pid) + "/stat");
  const size_t end = stat.rfind(") ");
  if (end == std::string::npos) return 0;
  std::istringstream fields(stat.substr(end + 2));
  std::string field;
  constexpr int kBetween = 19;  // counted from the third field
  for (int i = 0; i < kBetween; ++i) fields >> field;
  int64_t ticks = 0;
  return fields >> ticks ? ticks : 0;
}

}  // namespace

ProcessIdentity identityOf(pid_t pid) {
  return {hostName(), lineOf("/proc/sys/kernel/random/boot_id"), startOf(pid)};
}

// The host name may change while the host runs; the boot id does not.
std::string otherHost(const ProcessIdentity& identity) {
  if (identity.host.empty()) return "";
  const ProcessIdentity here = identityOf(0);
  return identity.boot == here.boot || identity.host == here.host ? "" : identity.host;
}

bool isSameProcess(pid_t pid, int64_t start_ticks) {
  const int64_t found = pid > 0 ? startOf(pid) : 0;
  return found != 0 && (start_ticks == 0 || start_ticks == found);
}

}  // namespace dtf
