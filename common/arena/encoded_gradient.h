#pragma once

// The gradient that a worker sends, in the form in which it is sent.

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "common/arena/codec.h"
#include "common/arena/gradient_layout.h"
#include "common/tensor/buffer.h"

namespace dtf::arena {

// Owns: a share in the gradient's memory; memory for the bytes of a codec that isn't the identity,
// shared with messages that are being sent; the residual of a codec with state.
// Borrows: `codec`.
// Threads: thread-compatible; another thread may read bytes() and owner() during writeUpTo(), as
// far as the bytes were reported final (net/send_gate.h).
class EncodedGradient {
 public:
  explicit EncodedGradient(const Codec& codec);

  // Drops the residual if the job has gone back to an earlier cut since the last call: it belongs
  // to gradients that have no effect any more. Between exchanges.
  void follow(uint64_t epoch);

  // Encodes the whole gradient.
  void write(Gradient gradient);

  // Encodes a gradient without rows that is still being computed, piece by piece: begin(), then
  // writeUpTo() with never fewer elements than before, at last all. Returns how many of bytes() are
  // final.
  void begin(Gradient gradient);
  uint64_t writeUpTo(uint64_t elements);

  // The gradient of the last write() or begin().
  const Gradient& gradient() const { return gradient_; }
  std::span<const std::byte> bytes() const { return bytes_; }
  const std::shared_ptr<const void>& owner() const { return owner_; }

 private:
  void take(Gradient gradient);
  CodecInput input() {
    return {gradient_.values.data(), gradient_.row_counts, residual_.as<float>()};
  }

  const Codec& codec_;
  Gradient gradient_;
  std::shared_ptr<Buffer> buffer_;
  Buffer residual_;
  uint64_t epoch_ = 0;  // of the last follow()
  std::span<const std::byte> bytes_;
  std::shared_ptr<const void> owner_;
  uint64_t written_ = 0;      // elements, when it is written piece by piece
  uint64_t final_bytes_ = 0;  // likewise
};

}  // namespace dtf::arena
