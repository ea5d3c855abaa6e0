#pragma once

// The instruction sets that the vector kernels are compiled for. One binary carries all of them; a
// process uses the best that its CPU has.

#include <cstdint>
#include <span>
#include <string_view>

namespace dtf::runtime {

// x86-64 micro-architecture levels: v4 has AVX-512, v3 AVX2 and fused multiply-add. Elsewhere only
// the baseline.
enum class Isa : uint8_t { kBaseline, kV3, kV4 };

std::string_view isaName(Isa isa);  // "baseline", "x86-64-v3", "x86-64-v4"

// What this CPU can run, worst first; never empty. Thread-safe.
std::span<const Isa> supportedIsas();

// The last of supportedIsas(). Thread-safe.
Isa bestIsa();

}  // namespace dtf::runtime
