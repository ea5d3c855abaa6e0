#pragma once

// A connection to a daemon without dtf's client: a test sends any bytes, reads or ignores the
// answers, and measures the daemon's memory.

#include <sys/types.h>

#include <chrono>
#include <string>

namespace dtf::testing {

// The first bytes of a control connection, in this version's protocol (common/net/preamble.h).
std::string preamble();

// Resident memory of a process, in KiB; 0 when it is gone.
long residentKb(pid_t pid);

// Owns: a socket, connected to localhost.
// Threads: one.
// Blocks: send() until the kernel has taken the bytes, closedWithin() for its time.
class RawConnection {
 public:
  explicit RawConnection(int port);
  ~RawConnection();
  RawConnection(const RawConnection&) = delete;
  RawConnection& operator=(const RawConnection&) = delete;

  bool connected() const { return connected_; }
  void send(const std::string& bytes) const;
  // Sends the beginning of `bytes`: as much as the kernel takes at once. Returns its length.
  size_t sendSome(const std::string& bytes) const;
  // Whether the peer has closed the connection, or reset it. Reads nothing.
  bool closed() const;
  // True when the peer closed the connection (or reset it) within the time. Reads and forgets.
  bool closedWithin(std::chrono::seconds time) const;

 private:
  int fd_;
  bool connected_;
};

}  // namespace dtf::testing
