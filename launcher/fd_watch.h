#pragma once

// "Call me whenever this descriptor is readable": the one door between the launcher and the reactor
// for pipes and process descriptors. Refuses to read or interpret anything itself.

#include <functional>
#include <memory>

#include "common/base/file.h"

namespace boost::asio {
class io_context;
}

namespace dtf::launcher {

// Owns: the descriptor, which becomes non-blocking.
// Borrows: `io` (must outlive this).
// Threads: loop-thread only.
// Blocks: never.
// Errors: kInternal when the reactor refuses the descriptor (a closed one, for one).
class FdWatch {
 public:
  // `on_readable` runs on the loop, also at end of file, until close(); it may call close() itself.
  FdWatch(boost::asio::io_context& io, Fd fd, std::function<void()> on_readable);
  FdWatch(FdWatch&&) = default;
  FdWatch& operator=(FdWatch&&) = delete;
  ~FdWatch();

  int fd() const;  // -1 after close()
  void close();

 private:
  struct State;
  static void arm(const std::shared_ptr<State>& state);
  std::shared_ptr<State>
      state_;  // shared with the handler in flight, which may run after this is gone
};

}  // namespace dtf::launcher
