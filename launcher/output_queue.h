#pragma once

// Text on its way to a terminal, a pipe or a file whose reader may have stopped reading (Ctrl-S, a
// full pipe). The job must not stop with it, so nothing here waits.

#include <cstddef>
#include <string>
#include <string_view>

#include "common/base/clock.h"

namespace dtf::launcher {

// Borrows: the descriptor.
// Owns: at most kBytesMax of text that the reader has not taken yet.
// Threads: loop-thread only.
// Blocks: only finish().
// Errors: none; a reader that is gone ends the output.
class OutputQueue {
 public:
  static constexpr size_t kBytesMax = size_t{1} << 20;

  explicit OutputQueue(int fd) : fd_(fd) {}

  // Takes all of `text` or, when there is no room for it, nothing; false: nothing.
  bool push(std::string_view text);

  // Writes as much as the reader takes now. True when nothing is left.
  bool pump();

  // Writes the rest, as long as the reader takes something at least every `patience`. False: some
  // is left, or the descriptor has failed.
  bool finish(Duration patience);

 private:
  const int fd_;
  bool broken_ = false;
  std::string text_;
};

}  // namespace dtf::launcher
