#pragma once

// Loops over gradients that don't depend on the optimizer. All are IEEE exact and sum in a fixed
// order, so that the result has the same bits with every instruction set.

#include <cstdint>
#include <optional>
#include <span>

namespace dtf::optimizer {

// Elements processed together: 8 KiB, a quarter of a small L1 cache, beside the arrays read. Sums
// of squares have one partial sum for each chunk.
inline constexpr uint64_t kChunkElements = 2048;

// Computes mean[i] = (g0[begin + i] + g1[begin + i] + ...) / their number, summed left to right, of
// at least two gradients. `weights`: of each gradient; none: they are equal. If they differ, the
// mean is the sum of (weight / all weights) * gradient, in the same order.
void meanOf(std::span<const float* const> gradients, std::span<const uint32_t> weights,
            uint64_t begin, uint64_t n, float* mean);

void addInto(float* sum, const float* values, uint64_t n);                  // sum += values
void addScaled(float* sum, const float* values, float factor, uint64_t n);  // sum += factor*values
void scale(float* values, float factor, uint64_t n);                        // values *= factor
void clipByValue(float* values, float bound, uint64_t n);  // to [-bound, bound]; a NaN stays one
// average -= (average - values) * one_minus_decay
void moveAverage(float* average, const float* values, float one_minus_decay, uint64_t n);

// Returns the sum in double precision: exact squares, summed in 16 lanes and then in chunks of
// kChunkElements, always in the same order.
double sumOfSquares(std::span<const float> values);

// Returns the index of the first infinity or NaN; nullopt: every value is finite. Runs at memory
// speed.
std::optional<uint64_t> firstNonFinite(std::span<const float> values);

}  // namespace dtf::optimizer
