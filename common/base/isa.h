#pragma once

// The instruction sets that numeric loops are compiled for. One binary contains all of them. A
// process uses the best one that its CPU has and that the environment variable DTF_MAX_CPU_ISA
// allows: baseline, avx2 or avx512. So one machine can stand in for older ones.

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace dtf {

// x86-64 micro-architecture levels: v4 has AVX-512, v3 AVX2 and fused multiply-add. Other
// architectures have only the baseline.
enum class Isa : uint8_t { kBaseline, kV3, kV4 };

std::string_view isaName(Isa isa);  // "baseline", "avx2", "avx512"

// Returns the sets of `isas` up to the one named `max`; all if `max` is empty.
// Errors: kUsage with the valid names for another name.
std::vector<Isa> isasUpTo(std::span<const Isa> isas, std::string_view max);

// Returns the sets this process may use, worst first; never empty. Reads the environment once.
// Threads: thread-safe.
// Errors: as isasUpTo().
std::span<const Isa> supportedIsas();

// Returns the last of supportedIsas(). Threads, errors: as there.
Isa bestIsa();

// Returns whether this process may multiply tiles of bfloat16 (AMX): the processor and the kernel
// support it, and DTF_MAX_CPU_ISA is not set, since all its values exclude AMX. Requests the
// registers from the kernel once.
// Threads: thread-safe.
bool hasMatrixTiles();

}  // namespace dtf
