#pragma once

// Random numbers that are a pure function of (seed, stream, position): the same on every machine,
// in any order, on any number of threads, and resumable from the position alone.

#include <array>
#include <cstdint>

namespace dtf {

// Philox4x32-10: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC
// 2011. `counter` is the position, `key` the seed and stream. Thread-safe.
std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

// A cursor over one stream of Philox numbers. Value type, thread-compatible.
class Random {
 public:
  // `stream` tells apart users of one seed (variables, epochs, images).
  explicit Random(uint64_t seed, uint64_t stream = 0) : seed_(seed), stream_(stream) {}

  uint32_t next32();
  uint64_t next64() { return (uint64_t{next32()} << 32) | next32(); }
  uint64_t below(uint64_t bound);        // uniform in [0, bound); bound > 0
  double uniform();                      // [0, 1), 53 bits
  float uniform(float low, float high);  // [low, high)
  float normal();                        // mean 0, variance 1 (Box-Muller)

 private:
  uint64_t seed_;
  uint64_t stream_;
  uint64_t block_ = 0;
  std::array<uint32_t, 4> values_{};
  int left_ = 0;
  float spare_normal_ = 0;
  bool has_spare_ = false;
};

}  // namespace dtf
