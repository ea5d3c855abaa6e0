#include "common/base/random.h"

#include <cmath>

#include "common/base/check.h"

namespace dtf {

std::array<uint32_t, 4> philox(std::array<uint32_t, 4> c, std::array<uint32_t, 2> k) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t{0xD2511F53} * c[0];
    const uint64_t p1 = uint64_t{0xCD9E8D57} * c[2];
    c = {static_cast<uint32_t>(p1 >> 32) ^ c[1] ^ k[0], static_cast<uint32_t>(p1),
         static_cast<uint32_t>(p0 >> 32) ^ c[3] ^ k[1], static_cast<uint32_t>(p0)};
    k[0] += 0x9E3779B9;
    k[1] += 0xBB67AE85;
  }
  return c;
}

uint32_t Random::next32() {
  if (left_ == 0) {
    values_ = philox({static_cast<uint32_t>(block_), static_cast<uint32_t>(block_ >> 32),
                      static_cast<uint32_t>(stream_), static_cast<uint32_t>(stream_ >> 32)},
                     {static_cast<uint32_t>(seed_), static_cast<uint32_t>(seed_ >> 32)});
    ++block_;
    left_ = 4;
  }
  return values_[4 - left_--];
}

uint64_t Random::below(uint64_t bound) {
  DTF_CHECK(bound > 0);
  const uint64_t limit = UINT64_MAX - UINT64_MAX % bound;  // reject the tail: no modulo bias
  uint64_t value = next64();
  while (value >= limit) value = next64();
  return value % bound;
}

double Random::uniform() {
  return static_cast<double>(next64() >> 11) * 0x1.0p-53;
}

float Random::uniform(float low, float high) {
  return low + (high - low) * static_cast<float>(next32() >> 8) * 0x1.0p-24f;
}

float Random::normal() {
  if (has_spare_) {
    has_spare_ = false;
    return spare_normal_;
  }
  const double radius = std::sqrt(-2.0 * std::log(1.0 - uniform()));
  const double angle = 6.283185307179586 * uniform();
  spare_normal_ = static_cast<float>(radius * std::sin(angle));
  has_spare_ = true;
  return static_cast<float>(radius * std::cos(angle));
}

}  // namespace dtf
