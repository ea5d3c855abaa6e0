#pragma once

// The random numbers of common/base/random.h, for kernels.

#include <cstdint>

#include "gpu/portable.h"

namespace dtf::gpu {

// After J. K. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (2011), Philox 4x32 with
// 10 rounds. Value type: the counter, and once drawn the numbers.
struct Philox {
  uint32_t c[4];
  DTF_HOST_DEVICE void draw(uint32_t key0, uint32_t key1) {
    for (int round = 0; round < 10; ++round) {
      const uint64_t p0 = uint64_t{c[0]} * 0xD2511F53u, p1 = uint64_t{c[2]} * 0xCD9E8D57u;
      const uint32_t next[4] = {
          static_cast<uint32_t>(p1 >> 32) ^ c[1] ^ key0, static_cast<uint32_t>(p1),
          static_cast<uint32_t>(p0 >> 32) ^ c[3] ^ key1, static_cast<uint32_t>(p0)};
      for (int word = 0; word < 4; ++word) c[word] = next[word];
      key0 += 0x9E3779B9u;
      key1 += 0xBB67AE85u;
    }
  }
};

}  // namespace dtf::gpu
