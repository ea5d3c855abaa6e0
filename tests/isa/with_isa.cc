// with_isa SET PROGRAM [ARGUMENT...]: runs the program with DTF_MAX_CPU_ISA=SET. On a CPU without
// that set it prints so and exits with 77, which Meson counts as skipped: a run with a smaller set
// proves nothing about this one.

#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <string_view>

#include "common/base/error.h"
#include "common/base/isa.h"

int main(int argc, char** argv) {
  if (argc < 3) {
    std::cerr << "usage: with_isa baseline|avx2|avx512 PROGRAM [ARGUMENT...]\n";
    return dtf::exitCode(dtf::ErrorCode::kUsage);
  }
  const std::string_view wanted = argv[1];
  // A set that only the caller's own DTF_MAX_CPU_ISA excludes is not missing in this CPU.
  ::unsetenv("DTF_MAX_CPU_ISA");
  try {
    if (dtf::isaName(dtf::isasUpTo(dtf::supportedIsas(), wanted).back()) == wanted) {
      ::setenv("DTF_MAX_CPU_ISA", argv[1], 1);
      ::execv(argv[2], argv + 2);
      std::cerr << "with_isa: can't run " << argv[2] << '\n';
      return 1;
    }
    std::cout << "SKIPPED: this CPU has no " << wanted << ", only up to "
              << dtf::isaName(dtf::bestIsa()) << '\n';
    return 77;
  } catch (const dtf::Error& error) {
    std::cerr << "with_isa: " << error.message() << '\n';
    return dtf::exitCode(error.code());
  }
}
