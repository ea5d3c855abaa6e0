#pragma once

// XXH3-64 of a stream of bytes: every checksum in a checkpoint, and the digest of parameters. It
// finds damage, not malice.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

struct XXH3_state_s;

namespace dtf {

// Owns: its state. Movable; threads: one at a time.
class Checksum {
 public:
  Checksum();
  ~Checksum();
  Checksum(Checksum&&) noexcept = default;
  Checksum& operator=(Checksum&&) noexcept = default;

  void reset();
  void update(const void* data, size_t bytes);
  uint64_t value() const;  // of what came so far

 private:
  struct Free {
    void operator()(XXH3_state_s* state) const;
  };
  std::unique_ptr<XXH3_state_s, Free> state_;
};

uint64_t checksumOf(std::string_view bytes);

// What is hashed at a time by those who write or read meanwhile: it is still in the cache.
inline constexpr uint64_t kChecksumChunkBytes = 1 << 20;

// 16 hexadecimal digits in lower case, as xxhsum prints them.
std::string hexOf(uint64_t value);
// Errors: kBadData when the text is anything else.
uint64_t fromHex(std::string_view text);

}  // namespace dtf
