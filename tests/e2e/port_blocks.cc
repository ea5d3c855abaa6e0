#include "tests/e2e/port_blocks.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <random>
#include <set>
#include <stdexcept>
#include <string>

#include "tests/support/loopback.h"

namespace dtf::testing {

namespace {

constexpr int kFirstPort = 20000;
constexpr int kBlockPorts = 100;
constexpr int kBlocks = 120;  // up to 31999: the kernel's own begin at 32768

bool canBind(int port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in address = loopback(port);
  const bool bound = ::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  ::close(fd);
  return bound;
}

// The lock of the block, an open file; the kernel gives it back when this process ends. -1: another
// holds it. The file stays: one that is removed while locked would let two have the block.
int lockBlock(int first_port) {
  const auto folder =
      std::filesystem::temp_directory_path() / ("dtf-test-ports-" + std::to_string(::getuid()));
  ::mkdir(folder.c_str(), 0700);
  const auto file = folder / std::to_string(first_port);
  const int fd = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) throw std::runtime_error("cannot open " + file.string());
  if (::flock(fd, LOCK_EX | LOCK_NB) == 0) return fd;
  ::close(fd);
  return -1;
}

// The first port of a block that is now this process's. From a random one on: a block that was
// given back a moment ago may still have connections that linger.
int takeBlock() {
  std::random_device random;
  const int start = static_cast<int>(random() % kBlocks);
  for (int i = 0; i < kBlocks; ++i) {
    const int first = kFirstPort + (start + i) % kBlocks * kBlockPorts;
    if (lockBlock(first) >= 0) return first;
  }
  throw std::runtime_error("other tests hold all blocks of ports");
}

std::set<int>& given() {
  static std::set<int> ports;
  return ports;
}

}  // namespace

std::vector<int> freePorts(int count) {
  static int next = 0;
  static int end = 0;
  std::vector<int> ports;
  while (static_cast<int>(ports.size()) < count) {
    if (next == end) {
      next = takeBlock();
      end = next + kBlockPorts;
    }
    if (canBind(next)) ports.push_back(next);
    ++next;
  }
  given().insert(ports.begin(), ports.end());
  return ports;
}

bool isGiven(int port) {
  return given().contains(port);
}

bool somebodyListens(int port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in address = loopback(port);
  const bool connected =
      ::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  ::close(fd);
  return connected;
}

bool TEST_blockIsFree(int port) {
  const int lock = lockBlock(kFirstPort + (port - kFirstPort) / kBlockPorts * kBlockPorts);
  if (lock >= 0) ::close(lock);
  return lock >= 0;
}

}  // namespace dtf::testing
