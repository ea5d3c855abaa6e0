#pragma once

// Where log lines go: stderr, without ever waiting for its reader.

#include <sys/types.h>

#include <cstdint>
#include <string_view>

#include "common/base/clock.h"
#include "common/base/file.h"

namespace dtf {

// Writes lines to stderr. A pipe whose reader has stopped (Ctrl-Z on dtf-launch) is full after
// 64 KiB, a terminal (Ctrl-S) sooner: from then on lines are dropped and counted. The pipe itself
// is the bounded queue, so what was written is safe even if this process is killed the next moment.
// Owns: a second description of the pipe or terminal, so that making it non-blocking changes
// nothing for the shell or another process that shares it.
// Borrows: descriptor 2, whatever it is at each call.
// Threads: thread-compatible; awaitRoom() may overlap with anything.
// Blocks: write() never on a reader (on the disk, where stderr is a file).
// Errors: none; a reader that is gone loses the lines.
class StderrSink {
 public:
  // `text` is one line or more, the last "\n" included; it goes out as printableLines(). False:
  // there was no room, or not for all of it; its lines are counted.
  bool write(std::string_view text);

  // How many lines were lost; starts from 0 again when `forgetDropped` is called.
  uint64_t dropped() const { return dropped_; }
  void forgetDropped() { dropped_ = 0; }

  // For the line that says why the process is about to end.
  static void awaitRoom(Duration patience);

 private:
  void adoptStderr();
  bool send(std::string_view text);

  Fd own_;            // none: a file, a socket, or a pipe that this user may not open anew
  dev_t device_ = 0;  // of descriptor 2 when own_ was opened
  ino_t inode_ = 0;
  uint64_t dropped_ = 0;
  bool cut_ = false;  // what was written last lacks its end
};

}  // namespace dtf
