#include "common/base/isa.h"

#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

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

const char* maxNamed() {
  const char* const max = std::getenv("DTF_MAX_CPU_ISA");
  return max == nullptr ? "" : max;
}

std::vector<Isa> detectAllowed() {
  return isasUpTo(detect(), maxNamed());
}

// The tile registers take 8 KiB; Linux enables them only for processes that request them. See
// Documentation/x86/xstate.rst in the kernel's sources.
bool detectMatrixTiles() {
#if defined(__x86_64__) && defined(__linux__)
  constexpr unsigned kBFloat16 = 1U << 22, kTiles = 1U << 24, kAvx512BFloat16 = 1U << 5;
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) return false;
  if ((d & kBFloat16) == 0 || (d & kTiles) == 0) return false;
  if (__get_cpuid_count(7, 1, &a, &b, &c, &d) == 0 || (a & kAvx512BFloat16) == 0) return false;
  constexpr long kRequest = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  return ::syscall(SYS_arch_prctl, kRequest, kTileData) == 0;
#else
  return false;
#endif
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

bool hasMatrixTiles() {
  static const bool has = bestIsa() == Isa::kV4 && *maxNamed() == '\0' && detectMatrixTiles();
  return has;
}

}  // namespace dtf
