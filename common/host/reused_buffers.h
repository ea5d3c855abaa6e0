#pragma once

// Buffers that are reused when their last user lets go: a message once it is written, a gradient
// once it is applied.

#include <memory>
#include <vector>

#include "common/tensor/buffer.h"

namespace dtf::host {

// Owns: up to `kept` buffers, shared with their users. Further buffers are freed after use.
// Threads: thread-compatible; a user may release its buffer on any thread.
class ReusedBuffers {
 public:
  explicit ReusedBuffers(size_t kept) : buffers_(kept) {}

  // Returns a buffer of at least `bytes` without another user. A new buffer that is kept gets
  // `room` bytes, at least as many, so that it fits later requests.
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
