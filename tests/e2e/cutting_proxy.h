#pragma once

// A man in the middle between one worker and its ps, who lets the worker's last push through to the
// half.

#include <atomic>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <thread>

namespace dtf::testing {

// Passes everything on, both ways, until the worker has pushed `whole` times; of the next push the
// header and half of the body reach the ps. Then `on_cut` is called and every connection closed. A
// push is a message of `push_bytes_min` bytes or more on a bulk connection.
// Owns: a thread, sockets.
// Threads: one; `on_cut` is called on the proxy's.
class CuttingProxy {
 public:
  CuttingProxy(int ps_port, size_t whole, size_t push_bytes_min, std::function<void()> on_cut);
  ~CuttingProxy();
  CuttingProxy(const CuttingProxy&) = delete;
  CuttingProxy& operator=(const CuttingProxy&) = delete;

  int port() const { return port_; }
  bool cut() const { return cut_; }

 private:
  struct Pipe;  // one connection of the worker, and ours to the ps for it

  void run();
  void accept();
  bool forward(Pipe& pipe, bool to_ps);  // false: an end has closed
  size_t allowed(Pipe& pipe, const char* bytes, size_t size);

  const int ps_port_;
  const size_t whole_;
  const size_t push_bytes_min_;
  const std::function<void()> on_cut_;
  int listener_ = -1;
  int wake_[2] = {-1, -1};  // the destructor writes, the thread ends
  int port_ = 0;
  size_t pushes_ = 0;
  std::atomic<bool> cut_{false};
  std::map<int, std::shared_ptr<Pipe>> pipes_;  // by either socket
  std::thread thread_;
};

}  // namespace dtf::testing
