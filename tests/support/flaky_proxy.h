#pragma once

// A network between a client and a server on loopback, that breaks, stalls and dribbles as a test
// says.

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

// Passes every connection on, both ways.
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

  // The connection over which the `bytes`-th byte from now goes that way ends behind it, both ways.
  void cutAfter(Way way, size_t bytes);
  // All that there are end, then and so on.
  void cutEvery(std::chrono::milliseconds period);
  // At most so many bytes in one packet.
  void setChunkMax(size_t bytes);
  // On the connections to come: passes a packet of each, each way, and then nothing for so long.
  void slowDown(std::chrono::milliseconds pause);
  // On the connections that there are now nothing passes that way any more, nor does their end.
  void silence(Way way);
  // Connections end as soon as they are made.
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
