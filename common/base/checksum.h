#pragma once

// XXH3-64 of a stream of bytes: the checksum of all checkpoint files, and the digest of parameters.
// It detects damage, not malice.

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
  uint64_t value() const;  // of the bytes so far

 private:
  struct Free {
    void operator()(XXH3_state_s* state) const;
  };
  std::unique_ptr<XXH3_state_s, Free> state_;
};

uint64_t checksumOf(std::string_view bytes);

// Chunk size for hashing while reading or writing: a chunk is still in the cache.
inline constexpr uint64_t kChecksumChunkBytes = 1 << 20;

// 16 hexadecimal digits in lower case, as xxhsum prints them.
std::string hexOf(uint64_t value);
// The reverse. Errors: kBadData if the text is anything else.
uint64_t fromHex(std::string_view text);

}  // namespace dtf
