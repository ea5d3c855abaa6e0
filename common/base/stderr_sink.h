#pragma once

// The output of log lines: stderr, without waiting for its reader.

#include <sys/types.h>

#include <cstdint>
#include <string_view>

#include "common/base/clock.h"
#include "common/base/file.h"

namespace dtf {

// Writes lines to stderr. A pipe whose reader has stopped (Ctrl-Z on dtf-launch) is full after 64
// KiB, a terminal (Ctrl-S) sooner. From then on lines are dropped and counted. The pipe itself is
// the bounded queue, so written lines are safe even if this process is killed right after.
// Owns: a second description of the pipe or terminal; making it non-blocking leaves the shell and
// other processes that share it unaffected.
// Borrows: descriptor 2, whatever it is at each call.
// Threads: thread-compatible; awaitRoom() may overlap with any call.
// Blocks: write() never on a reader (on the disk, if stderr is a file).
// Errors: none; lines are lost once the reader is gone.
class StderrSink {
 public:
  // Writes one or more lines, including the last "\n", through printableLines(). Returns false, and
  // counts the lines, if there was no room for all of them.
  bool write(std::string_view text);

  // Returns the number of lines lost since forgetDropped().
  uint64_t dropped() const { return dropped_; }
  void forgetDropped() { dropped_ = 0; }

  // Waits for room, for the line that explains why the process ends.
  static void awaitRoom(Duration patience);

 private:
  void adoptStderr();
  bool send(std::string_view text);

  Fd own_;            // none for a file, a socket, or a pipe that this user may not reopen
  dev_t device_ = 0;  // of descriptor 2 when own_ was opened
  ino_t inode_ = 0;
  uint64_t dropped_ = 0;
  bool cut_ = false;  // the last write lacks its end
};

}  // namespace dtf
