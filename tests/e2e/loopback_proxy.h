#pragma once

// A network between workers and ps, in one thread: bytes pass, and a test may see, change or stop
// them.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <thread>
#include <vector>

namespace dtf::testing {

inline constexpr size_t kPreambleBytes = 16;  // common/net/preamble.h; of the worker alone

enum class Toward : uint8_t { kPs, kWorker };

// One connection of a worker. All calls are the proxy's thread's.
class ProxiedConnection {
 public:
  virtual ~ProxiedConnection() = default;
  // May change the bytes. Returns how many of them, from the first on, are sent on.
  virtual size_t pass(Toward direction, char* bytes, size_t size) = 0;
};

// Owns: a thread, sockets, connections.
// Threads: its callbacks run on its own thread, the rest is the owner's.
class LoopbackProxy {
 public:
  struct Callbacks {
    std::function<std::shared_ptr<ProxiedConnection>()> connect;
    // Asked behind every pass(): true closes all connections, and then calls `on_over`.
    std::function<bool()> is_over = [] { return false; };
    std::function<void()> on_over = [] {};
  };
  // Errors: std::runtime_error when there is no socket or pipe.
  LoopbackProxy(std::vector<int> ps_ports, Callbacks callbacks);
  ~LoopbackProxy();
  LoopbackProxy(const LoopbackProxy&) = delete;
  LoopbackProxy& operator=(const LoopbackProxy&) = delete;

  // In the order of `ps_ports`.
  const std::vector<int>& ports() const { return ports_; }

 private:
  struct Pipe;  // one connection of a worker, and the proxy's own to the ps for it

  void run();
  void accept(size_t ps);
  bool forward(Pipe& pipe, Toward direction);  // false: an end has closed

  const std::vector<int> ps_ports_;
  const Callbacks callbacks_;
  std::vector<int> listeners_;
  std::vector<int> ports_;
  int wake_[2] = {-1, -1};                      // the destructor writes, the thread ends
  std::map<int, std::shared_ptr<Pipe>> pipes_;  // by either socket
  std::thread thread_;
};

}  // namespace dtf::testing
