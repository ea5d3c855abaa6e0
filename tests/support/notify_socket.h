#pragma once

// The service manager's end of NOTIFY_SOCKET, for tests.

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "common/base/file.h"

namespace dtf::testing {

// Owns: the socket; a file of that name stays.
// Blocks: next() until a datagram comes or `patience` has passed, await() likewise.
class NotifySocket {
 public:
  // A path, or "@name" in the abstract name space.
  explicit NotifySocket(const std::string& name)
      : name_(name), fd_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, name.data(), name.size());
    if (name[0] == '@') address.sun_path[0] = '\0';
    const size_t bytes = offsetof(sockaddr_un, sun_path) + name.size() + (name[0] == '@' ? 0 : 1);
    if (::bind(fd_.get(), reinterpret_cast<const sockaddr*>(&address),
               static_cast<socklen_t>(bytes)) != 0)
      throw std::runtime_error("cannot bind " + name + ": " + std::strerror(errno));
  }

  const std::string& name() const { return name_; }

  std::optional<std::string> next(std::chrono::milliseconds patience) {
    pollfd waiting{fd_.get(), POLLIN, 0};
    if (::poll(&waiting, 1, static_cast<int>(patience.count())) != 1) return std::nullopt;
    char text[4096];
    const ssize_t n = ::recv(fd_.get(), text, sizeof text, 0);
    if (n < 0) return std::nullopt;
    heard_ += std::string(text, static_cast<size_t>(n)) + "\n";
    return std::string(text, static_cast<size_t>(n));
  }

  // Returns the next datagram that contains `word`; skips others.
  std::optional<std::string> await(const std::string& word, std::chrono::seconds patience) {
    const auto end = std::chrono::steady_clock::now() + patience;
    for (;;) {
      const auto left = end - std::chrono::steady_clock::now();
      if (left <= left.zero()) return std::nullopt;
      const auto got = next(std::chrono::ceil<std::chrono::milliseconds>(left));
      if (got && got->find(word) != std::string::npos) return got;
    }
  }

  // All datagrams so far, for messages.
  const std::string& heard() const { return heard_; }

 private:
  std::string name_;
  Fd fd_;
  std::string heard_;
};

}  // namespace dtf::testing
