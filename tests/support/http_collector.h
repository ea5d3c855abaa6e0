#pragma once

// Accepts POSTs, for tests: one connection after the other, each with the same reply.

#include <sys/socket.h>
#include <sys/time.h>

#include <string>
#include <vector>

#include "common/base/file.h"
#include "common/base/mutex.h"
#include "common/base/thread.h"
#include "tests/support/loopback.h"

namespace dtf::testing {

class HttpCollector {
 public:
  // `answer`: the bytes of the reply; empty: it accepts connections and requests, and never
  // replies.
  explicit HttpCollector(std::string answer)
      : answer_(std::move(answer)), listening_(listenOnLoopback()), thread_("collector", [this] {
          for (;;) {
            Fd fd(::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC));
            if (!fd.valid()) return;
            serve(std::move(fd));
          }
        }) {}
  ~HttpCollector() { ::shutdown(listening_.get(), SHUT_RDWR); }

  uint16_t port() const { return portOf(listening_); }
  // Returns the complete requests, in order.
  std::vector<std::string> requests() const {
    const MutexLock lock(mutex_);
    return requests_;
  }

 private:
  void serve(Fd fd) {
    const timeval patience{5, 0};
    ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    std::string request;
    char bytes[8192];
    while (!isWhole(request)) {
      const ssize_t n = ::recv(fd.get(), bytes, sizeof bytes, 0);
      if (n <= 0) return;
      request.append(bytes, static_cast<size_t>(n));
    }
    {
      const MutexLock lock(mutex_);
      requests_.push_back(request);
      if (answer_.empty()) {
        held_.push_back(std::move(fd));
        return;
      }
    }
    ::send(fd.get(), answer_.data(), answer_.size(), MSG_NOSIGNAL);
  }

  static bool isWhole(const std::string& request) {
    constexpr std::string_view kLength = "Content-Length: ";
    const size_t head = request.find("\r\n\r\n"), length = request.find(kLength);
    if (head == std::string::npos || length == std::string::npos) return false;
    return request.size() >= head + 4 + std::stoul(request.substr(length + kLength.size()));
  }

  const std::string answer_;
  const Fd listening_;
  mutable Mutex mutex_;
  std::vector<std::string> requests_ DTF_GUARDED_BY(mutex_);
  std::vector<Fd> held_ DTF_GUARDED_BY(mutex_);  // waiting for a reply
  Thread thread_;                                // last: its body uses the others
};

}  // namespace dtf::testing
