#pragma once

// What a figure was measured on: no figure means anything without it.

#include <string>

namespace dtf::bench {

// "AMD EPYC, 2 cores, avx2": the CPU's model, the cores that this process may use, and the
// instruction set in force (base/isa.h).
std::string machine();

// The first "model name" in the text of /proc/cpuinfo; "unknown CPU" when there is none.
std::string cpuModel(const std::string& cpuinfo);

}  // namespace dtf::bench
