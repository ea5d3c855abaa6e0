#pragma once

// bfloat16: the upper half of a float32. It has the same range, with 8 of its 24 bits of precision.

#include <cstdint>

namespace dtf::arena {

// Sets to[i] to values[i] rounded to the nearest bfloat16, of two equally near ones to the one with
// last bit 0. A NaN stays one, numbers beyond the largest bfloat16 (3.39e38) become infinite, and
// numbers below 2^-126 become multiples of 2^-133. The same bits with every instruction set. The
// arrays don't overlap.
void toBFloat16(const float* values, uint64_t n, uint16_t* to);

// Converts exactly.
void fromBFloat16(const uint16_t* values, uint64_t n, float* to);

}  // namespace dtf::arena
