#include "common/runtime/isa.h"

#include <vector>

namespace dtf::runtime {
namespace {

std::vector<Isa> detect() {
  std::vector<Isa> isas = {Isa::kBaseline};
#if defined(__x86_64__)
  __builtin_cpu_init();
  const bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                  __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
  if (v3) isas.push_back(Isa::kV3);
  const bool v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                  __builtin_cpu_supports("avx512vl");
  if (v4) isas.push_back(Isa::kV4);
#endif
  return isas;
}

}  // namespace

std::string_view isaName(Isa isa) {
  switch (isa) {
    case Isa::kBaseline:
      return "baseline";
    case Isa::kV3:
      return "x86-64-v3";
    case Isa::kV4:
      return "x86-64-v4";
  }
  return "";
}

std::span<const Isa> supportedIsas() {
  static const std::vector<Isa> isas = detect();
  return isas;
}

Isa bestIsa() {
  return supportedIsas().back();
}

}  // namespace dtf::runtime
