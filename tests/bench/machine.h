#pragma once

// The machine of a measurement, printed beside every figure.

#include <string>

namespace dtf::bench {

// "AMD EPYC, 2 cores, avx2": the CPU's model, the cores that this process may use, and the
// instruction set in force (base/isa.h).
std::string machine();

}  // namespace dtf::bench
