#include "common/base/checksum.h"

#include <xxhash.h>
// The library's choice of AVX2 or AVX-512 at run time, where it has one: twice as fast.
#ifdef DTF_XXHASH_DISPATCH
#include <xxh_x86dispatch.h>
#endif

#include <new>

#include "common/base/check.h"
#include "common/base/error.h"

namespace dtf {

Checksum::Checksum() : state_(XXH3_createState()) {
  if (!state_) throw std::bad_alloc();
  reset();
}

Checksum::~Checksum() = default;

void Checksum::Free::operator()(XXH3_state_s* state) const {
  XXH3_freeState(state);
}

void Checksum::reset() {
  DTF_CHECK(XXH3_64bits_reset(state_.get()) == XXH_OK);
}

void Checksum::update(const void* data, size_t bytes) {
  DTF_CHECK(XXH3_64bits_update(state_.get(), data, bytes) == XXH_OK);
}

uint64_t Checksum::value() const {
  return XXH3_64bits_digest(state_.get());
}

uint64_t checksumOf(std::string_view bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

std::string hexOf(uint64_t value) {
  std::string text(16, '0');
  for (size_t i = 16; i-- > 0; value >>= 4) text[i] = "0123456789abcdef"[value & 15];
  return text;
}

uint64_t fromHex(std::string_view text) {
  uint64_t value = 0;
  bool good = text.size() == 16;
  for (const char c : text) {
    const size_t digit = std::string_view("0123456789abcdef").find(c);
    good = good && digit != std::string_view::npos;
    value = value << 4 | (digit & 15);
  }
  if (!good)
    throw Error(ErrorCode::kBadData,
                "'" + std::string(text.substr(0, 32)) + "' is not a checksum of 16 hex digits");
  return value;
}

}  // namespace dtf
