#pragma once

// The instruction sets that loops over numbers are compiled for. One binary carries all of them; a
// process uses the best that its CPU has and that the environment variable DTF_MAX_CPU_ISA allows:
// baseline, avx2 or avx512. So one machine can stand in for those that have less.

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace dtf {

// x86-64 micro-architecture levels: v4 has AVX-512, v3 AVX2 and fused multiply-add. Elsewhere only
// the baseline.
enum class Isa : uint8_t { kBaseline, kV3, kV4 };

std::string_view isaName(Isa isa);  // "baseline", "avx2", "avx512"

// Those of `isas` up to the one that is named `max`; all when it is empty.
// Errors: kUsage, with the names there are, for another name.
std::vector<Isa> isasUpTo(std::span<const Isa> isas, std::string_view max);

// What this process may use, worst first; never empty. Read once: later changes of the environment
// do nothing.
// Threads: thread-safe.
// Errors: those of isasUpTo().
std::span<const Isa> supportedIsas();

// The last of supportedIsas(). Threads, errors: as there.
Isa bestIsa();

// Whether this process may multiply tiles of bfloat16 (AMX): the processor and the kernel have
// them, and DTF_MAX_CPU_ISA isn't set, whose words all end below. Asks the kernel once for the room
// that their registers take.
// Threads: thread-safe.
bool hasMatrixTiles();

}  // namespace dtf
