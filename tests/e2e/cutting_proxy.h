#pragma once

// A network between one worker and its ps that lets half of the worker's last push through.

#include <atomic>
#include <cstddef>
#include <functional>

#include "tests/e2e/loopback_proxy.h"

namespace dtf::testing {

// Passes everything on, both ways, until the worker has pushed `whole` times; of the next push the
// header and half of the body reach the ps. Then `on_cut` is called and every connection closed. A
// push is a message of `push_bytes_min` bytes or more on a bulk connection.
// Owns: a LoopbackProxy.
// Threads: one; `on_cut` is called on the proxy's.
class CuttingProxy {
 public:
  CuttingProxy(int ps_port, size_t whole, size_t push_bytes_min, std::function<void()> on_cut);

  int port() const { return proxy_.ports().front(); }
  bool cut() const { return cut_; }

 private:
  class Connection;

  const size_t whole_;
  const size_t push_bytes_min_;
  size_t pushes_ = 0;
  std::atomic<bool> cut_{false};
  LoopbackProxy proxy_;  // last: its thread uses all of the above
};

}  // namespace dtf::testing
