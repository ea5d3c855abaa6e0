#pragma once

// A network between a client and a server on loopback; a test makes it break, stall and dribble.

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "common/base/file.h"

namespace dtf::testing {

// Forwards every connection, both ways.
// Owns: a thread, sockets.
// Threads: thread-safe.
class FlakyProxy {
 public:
  enum class Way : uint8_t { kToServer, kToClient };

  explicit FlakyProxy(uint16_t server_port);
  ~FlakyProxy();
  FlakyProxy(const FlakyProxy&) = delete;
  FlakyProxy& operator=(const FlakyProxy&) = delete;

  uint16_t port() const { return port_; }
  size_t cuts() const { return cuts_; }
  size_t connections() const { return connections_; }  // made so far

  // Cuts, both ways, the connection that carries the `bytes`-th byte from now in this direction.
  void cutAfter(Way way, size_t bytes);
  // Cuts all connections after each `period`.
  void cutEvery(std::chrono::milliseconds period);
  void stopCutting();  // ends what cutEvery() began
  // Limits the bytes of one packet.
  void setChunkMax(size_t bytes);
  // For later connections: after each packet in each direction, passes nothing for `pause`.
  void slowDown(std::chrono::milliseconds pause);
  // Passes nothing more in this direction on existing connections, not even their end.
  void silence(Way way);
  // Closes new connections at once.
  void refuse(bool refuses);

 private:
  struct Link {
    Fd client;
    Fd server;
    bool silent[2] = {false, false};
  };
  void run();
  void accept();
  bool forward(Link& link, Way way);
  size_t allowed(Way way, size_t bytes);
  void cutAll();
  void wake();

  const uint16_t server_port_;
  const Fd listener_;
  const uint16_t port_;
  Fd wake_read_;
  Fd wake_write_;
  std::atomic<bool> ends_{false};
  std::atomic<size_t> cuts_{0};
  std::atomic<size_t> connections_{0};
  std::mutex mu_;  // guards all below
  std::list<Link> links_;
  std::optional<size_t> left_[2];  // bytes until a cut, by way
  std::optional<std::chrono::milliseconds> period_;
  std::chrono::steady_clock::time_point next_cut_;
  size_t chunk_max_ = 65536;
  std::chrono::milliseconds pause_{0};
  bool refuses_ = false;
  std::thread thread_;  // last: it uses all the others
};

}  // namespace dtf::testing
