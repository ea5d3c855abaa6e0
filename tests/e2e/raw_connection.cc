#include "tests/e2e/raw_connection.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>

#include "common/net/preamble.h"

namespace dtf::testing {

std::string preamble() {
  std::string bytes = "DTFRPC";
  for (const int shift : {0, 8}) bytes += static_cast<char>(net::kProtocolVersion >> shift);
  bytes += static_cast<char>(net::ConnectionKind::kControl);
  bytes.resize(net::kPreambleBytes, '\0');
  return bytes;
}

long residentKb(pid_t pid) {
  std::FILE* file = std::fopen(("/proc/" + std::to_string(pid) + "/statm").c_str(), "r");
  long size = 0, resident = 0;
  if (file != nullptr) {
    if (std::fscanf(file, "%ld %ld", &size, &resident) != 2) resident = 0;
    std::fclose(file);
  }
  return resident * 4;
}

RawConnection::RawConnection(int port) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(port));
  connected_ = ::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
}

RawConnection::~RawConnection() {
  ::close(fd_);
}

void RawConnection::send(const std::string& bytes) const {
  ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
}

size_t RawConnection::sendSome(const std::string& bytes) const {
  const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  return sent < 0 ? 0 : static_cast<size_t>(sent);
}

bool RawConnection::closed() const {
  pollfd asked{fd_, POLLRDHUP, 0};
  return ::poll(&asked, 1, 0) > 0;
}

bool RawConnection::closedWithin(std::chrono::seconds time) const {
  const auto end = std::chrono::steady_clock::now() + time;
  char buffer[4096];
  while (std::chrono::steady_clock::now() < end) {
    pollfd waiting{fd_, POLLIN, 0};
    if (::poll(&waiting, 1, 100) <= 0) continue;
    if (::recv(fd_, buffer, sizeof buffer, MSG_DONTWAIT) <= 0) return true;
  }
  return false;
}

}  // namespace dtf::testing
