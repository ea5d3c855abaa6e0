#pragma once

// What a person sees while the job runs: lines, and on a terminal one status line below them that
// is redrawn in place. A reader that stops reading (Ctrl-S, a full pipe) must not stop the job, so
// nothing here waits for it.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "launcher/output_queue.h"

namespace dtf::launcher {

enum class ColorMode : uint8_t { kAuto, kAlways, kNever };

// How much is said while a job runs.
//   quiet    warnings and errors
//   normal   also where the job is: the start in a few lines, evaluations, progress
//   verbose  also every log line of the tasks
enum class Verbosity : uint8_t { kQuiet, kNormal, kVerbose };

// False when it is none of auto, always, never.
bool parseColorMode(std::string_view text, ColorMode& mode);

// auto: on a terminal, unless NO_COLOR is set (https://no-color.org) or TERM is "dumb".
bool useColor(ColorMode mode, int fd);

// Whether a line can be redrawn in place: a terminal that understands escape sequences, which one
// without TERM, or with TERM=dumb, does not say of itself.
bool canRedraw(int fd);

// Borrows: the descriptor.
// Owns: what its reader has not taken yet, within the bound of OutputQueue; a line that finds no
// room is dropped and counted.
// Threads: loop-thread only.
// Blocks: only finish().
// Errors: none; a reader that is gone ends the output.
class Console {
 public:
  // `is_terminal`: a status line may be redrawn. `paints`: the severity of a line is coloured.
  Console(int fd, bool is_terminal, bool paints = false)
      : fd_(fd), is_terminal_(is_terminal), paints_(paints), queue_(fd) {}

  // Without "\n", as printableLines(). `prefix`: of dtf's own, which may be coloured.
  void line(std::string_view text, std::string_view prefix = {});
  void status(
      std::string_view text);  // replaces the status line; nothing where there is no terminal
  bool isTerminal() const { return is_terminal_; }
  size_t columns() const;  // of the terminal; 80 where it doesn't say

  // To be called often: lines that the reader did not take at once go out here.
  void pump() { queue_.pump(); }

  // Erases the status line and writes the rest.
  void finish();

 private:
  const int fd_;
  const bool is_terminal_;
  const bool paints_;
  OutputQueue queue_;
  std::string status_;
  uint64_t dropped_lines_ = 0;
};

}  // namespace dtf::launcher
