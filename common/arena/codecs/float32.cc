#include "common/arena/codecs/float32.h"

#include <cstring>

#include "common/base/check.h"

namespace dtf::arena {

Float32Codec::Float32Codec(uint64_t elements) : elements_(elements) {
  DTF_CHECK(elements % 2 == 0);  // whole words
}

uint64_t Float32Codec::elements(std::span<const uint32_t> row_counts) const {
  DTF_CHECK(row_counts.empty());
  return elements_;
}

uint64_t Float32Codec::bytes(std::span<const uint32_t> row_counts) const {
  return elements(row_counts) * sizeof(float);
}

uint64_t Float32Codec::encode(const CodecInput& from, ElementRange part, std::byte* to) const {
  DTF_CHECK(part.begin <= part.end && part.end <= elements_);
  encodeRun(from.values + part.begin, part.end - part.begin, to + part.begin * sizeof(float));
  return part.end * sizeof(float);
}

void Float32Codec::decode(std::span<const std::byte> from, std::span<const uint32_t> row_counts,
                          float* to) const {
  requireSize(from, bytes(row_counts));
  decodeRun(from.data(), elements_, to);
}

uint64_t Float32Codec::encodeRun(const float* values, uint64_t n, std::byte* to) const {
  if (n > 0) std::memcpy(to, values, n * sizeof(float));
  return n * sizeof(float);
}

uint64_t Float32Codec::decodeRun(const std::byte* from, uint64_t n, float* to) const {
  if (n > 0) std::memcpy(to, from, n * sizeof(float));
  return n * sizeof(float);
}

}  // namespace dtf::arena
