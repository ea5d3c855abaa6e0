#pragma once

// How dtf-launch and dtf-agent talk over a byte stream: first one line from the agent, its
// greeting, so that anything else that a host says is known for what it is; then frames both ways,
// each
//   u32 length (little-endian) of what follows | u8 kind | payload
// The payload of an order or a report is the JSON of messages.h; that of output and notices is the
// task (u32, little-endian) and its bytes as they are; that of a file's piece is the offset of its
// bytes (u64), the size of the file's name (u32), the name, and the bytes; that of a copy is more
// bytes of the files that the host lacks, one after the other; from an agent, of the file that it
// was asked for.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "launcher/ssh/run_files.h"

namespace dtf::launcher {

// Of a job's files, at most 1 MiB each, with what JSON adds to them.
inline constexpr size_t kFrameBytesMax = size_t{8} << 20;
// Of what an agent reports, at most how each unit of a job is, of which there may be a thousand: a
// launcher takes apart what any host sends.
inline constexpr size_t kReportBytesMax = size_t{1} << 20;
inline constexpr size_t kGreetingBytesMax = 256;

enum class FrameKind : uint8_t {
  kGreeting = 0,  // not a frame: the first line
  kMessage = 1,
  kOutput = 2,
  kNotices = 3,
  kFile = 4,
  kCopy = 5,
};

std::string messageFrame(std::string_view json);
std::string copyFrame(std::string_view bytes);
std::string bytesFrame(FrameKind kind, size_t task, std::string_view bytes);

// What bytesFrame() has put into a payload.
// Errors: kBadData.
struct TaskBytes {
  size_t task = 0;
  std::string_view bytes;  // of the payload
};
TaskBytes readTaskBytes(std::string_view payload);

std::string fileFrame(const FilePiece& piece);
// What fileFrame() has put into a payload.
// Errors: kBadData.
FilePiece readFilePiece(std::string_view payload);

// A launcher's, which awaits an agent's greeting and reports, or an agent's.
// Owns: a frame whose end has not come yet.
// Threads: thread-compatible.
class FrameReader {
 public:
  using OnFrame = std::function<void(FrameKind kind, std::string_view payload)>;

  FrameReader(bool awaits_greeting, OnFrame on_frame)
      : is_launchers_(awaits_greeting),
        awaits_greeting_(awaits_greeting),
        on_frame_(std::move(on_frame)) {}

  // Errors: kBadData for a length, a kind or a greeting that can't be; what came before it was
  // given. Not to be called again.
  void feed(std::string_view bytes);
  // Of a greeting: it was a line of what comes before one, and another follows.
  void awaitLine() { awaits_greeting_ = true; }

 private:
  bool takeGreeting();
  bool takeFrame();

  const bool is_launchers_;
  bool awaits_greeting_;
  const OnFrame on_frame_;
  std::string partial_;
};

}  // namespace dtf::launcher
