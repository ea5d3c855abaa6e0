#pragma once

// Memory that others refer to for a while (a message until it is written, a gradient until it is
// applied), and that is used again then.

#include <memory>
#include <vector>

#include "common/tensor/buffer.h"

namespace dtf::host {

// Owns: up to `kept` buffers, shared with whoever was given one; more are dropped after use.
// Threads: thread-compatible; a buffer may be let go on any thread.
class ReusedBuffers {
 public:
  explicit ReusedBuffers(size_t kept) : buffers_(kept) {}

  // One that nobody else has, of `bytes` at least; a new one is made with `room`, which is no less.
  std::shared_ptr<Buffer> take(size_t bytes, size_t room) {
    for (std::shared_ptr<Buffer>& buffer : buffers_) {
      if (buffer != nullptr && buffer.use_count() > 1) continue;
      if (buffer == nullptr || buffer->bytes() < bytes) buffer = std::make_shared<Buffer>(room);
      return buffer;
    }
    return std::make_shared<Buffer>(bytes);
  }
  std::shared_ptr<Buffer> take(size_t bytes) { return take(bytes, bytes); }

 private:
  std::vector<std::shared_ptr<Buffer>> buffers_;
};

}  // namespace dtf::host
