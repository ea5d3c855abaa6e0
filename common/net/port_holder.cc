#include "common/net/port_holder.h"

#include <charconv>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string_view>
#include <vector>

#include "common/base/text.h"

namespace dtf::net {

namespace {

namespace fs = std::filesystem;

// A line of /proc/net/tcp: "  0: 0100007F:08AD 00000000:0000 0A 00000000:00000000 00:00000000
// 00000000 0 0 <inode> ..."
struct TcpLine {
  uint16_t local_port = 0;
  bool listening = false;
  std::string inode;
};

bool parseTcpLine(const std::string& line, TcpLine& parsed) {
  std::istringstream fields(line);
  std::string slot, local, remote, state, queues, timer, retransmits, uid, timeout;
  if (!(fields >> slot >> local >> remote >> state >> queues >> timer >> retransmits >> uid >>
        timeout >> parsed.inode))
    return false;
  const size_t colon = local.rfind(':');
  if (colon == local.npos) return false;
  const char* end = local.data() + local.size();
  if (std::from_chars(local.data() + colon + 1, end, parsed.local_port, 16).ptr != end)
    return false;
  parsed.listening = state == "0A";
  return true;
}

// Returns the inodes of the sockets at `port`: the listening ones, or all if none listens.
std::set<std::string> inodesAt(uint16_t port) {
  std::set<std::string> listening, others;
  for (const char* table : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    std::ifstream in(table);
    TcpLine parsed;
    for (std::string line; std::getline(in, line);) {
      if (!parseTcpLine(line, parsed) || parsed.local_port != port || parsed.inode == "0") continue;
      (parsed.listening ? listening : others).insert(parsed.inode);
    }
  }
  return listening.empty() ? others : listening;
}

bool holdsSocket(const fs::path& process, const std::set<std::string>& inodes) {
  constexpr std::string_view kPrefix = "socket:[";
  std::error_code ec;
  for (fs::directory_iterator it(process / "fd", ec), end; !ec && it != end; it.increment(ec)) {
    std::error_code link_error;
    const std::string target = fs::read_symlink(it->path(), link_error).string();
    if (link_error || !target.starts_with(kPrefix)) continue;
    if (inodes.contains(target.substr(kPrefix.size(), target.size() - kPrefix.size() - 1)))
      return true;
  }
  return false;
}

std::string describeProcess(const fs::path& process) {
  std::string name;
  std::ifstream in(process / "comm");
  std::getline(in, name);
  return "pid " + process.filename().string() + " (" + name + ")";
}

}  // namespace

std::string portHolder(uint16_t port) {
  const auto inodes = inodesAt(port);
  if (inodes.empty()) return {};
  std::vector<std::string> holders;
  std::error_code ec;
  for (fs::directory_iterator it("/proc", ec), end; !ec && it != end; it.increment(ec)) {
    const std::string name = it->path().filename().string();
    if (name.find_first_not_of("0123456789") != name.npos) continue;
    if (holdsSocket(it->path(), inodes)) holders.push_back(describeProcess(it->path()));
  }
  return join(holders, ", ");
}

}  // namespace dtf::net
