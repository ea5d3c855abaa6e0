#include "common/base/isa.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>

#include "common/base/check.h"
#include "common/base/error.h"

namespace dtf {
namespace {

constexpr std::array kAll = {Isa::kBaseline, Isa::kV3, Isa::kV4};

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

std::vector<Isa> detectAllowed() {
  const char* const max = std::getenv("DTF_MAX_CPU_ISA");
  return isasUpTo(detect(), max == nullptr ? "" : max);
}

}  // namespace

std::string_view isaName(Isa isa) {
  switch (isa) {
    case Isa::kBaseline:
      return "baseline";
    case Isa::kV3:
      return "avx2";
    case Isa::kV4:
      return "avx512";
  }
  DTF_CHECK_MSG(false, std::to_string(static_cast<int>(isa)));
}

std::vector<Isa> isasUpTo(std::span<const Isa> isas, std::string_view max) {
  DTF_CHECK(!isas.empty() && std::is_sorted(isas.begin(), isas.end()));
  if (max.empty()) return {isas.begin(), isas.end()};
  const auto named =
      std::find_if(kAll.begin(), kAll.end(), [max](Isa isa) { return isaName(isa) == max; });
  if (named == kAll.end()) {
    throw Error(ErrorCode::kUsage, "DTF_MAX_CPU_ISA is '" + std::string(max) +
                                       "', which is no instruction set; use baseline, avx2 or "
                                       "avx512, or unset it.");
  }
  return {isas.begin(), std::upper_bound(isas.begin(), isas.end(), *named)};
}

std::span<const Isa> supportedIsas() {
  static const std::vector<Isa> isas = detectAllowed();
  return isas;
}

Isa bestIsa() {
  return supportedIsas().back();
}

}  // namespace dtf
