#pragma once

// Reads the read end of a pipe on the loop.

#include <functional>
#include <string_view>

#include "common/base/file.h"
#include "launcher/fd_watch.h"

namespace dtf::launcher {

// Owns: the read end.
// Borrows: `io` (must outlive this).
// Threads: loop-thread only.
// Blocks: never.
// Errors: none; a broken pipe is its end.
class PipeReader {
 public:
  using OnBytes = std::function<void(std::string_view bytes)>;

  // `on_bytes` gets at most 64 KiB a call, so that no task starves the others.
  PipeReader(boost::asio::io_context& io, Fd pipe, OnBytes on_bytes);
  PipeReader(PipeReader&&) = delete;

  // Delivers what the pipe holds at this moment and closes it. For a writer that is gone: a stray
  // grandchild that still holds the write end can't keep the launcher waiting.
  void drain();

 private:
  bool readOnce();  // false: nothing there now, or the end

  const OnBytes on_bytes_;
  FdWatch watch_;
};

}  // namespace dtf::launcher
