#pragma once

// Cuts a byte stream into lines of bounded length.

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace dtf::launcher {

// Owns: the beginning of a line whose end has not come yet, at most `bytes_max` bytes of it.
// Threads: thread-compatible.
// Blocks: never.
class LineSplitter {
 public:
  // Called once a line, without its "\n" (and without the "\r" before it). `cut`: the line was
  // longer than bytes_max and only its beginning is here.
  using OnLine = std::function<void(std::string_view line, bool cut)>;

  LineSplitter(size_t bytes_max, OnLine on_line)
      : bytes_max_(bytes_max), on_line_(std::move(on_line)) {}

  void feed(std::string_view bytes);
  void flush();  // the stream has ended: what is left is a line too

 private:
  void append(std::string_view part);
  void emit();

  const size_t bytes_max_;
  const OnLine on_line_;
  std::string partial_;
  bool cut_ = false;
};

}  // namespace dtf::launcher
