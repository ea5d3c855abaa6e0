#include "tests/bench/machine.h"

#include <fmt/core.h>

#include <thread>

#include "common/base/isa.h"
#include "common/base/processor_name.h"

namespace dtf::bench {

std::string machine() {
  return fmt::format("{}, {} cores, {}", processorName(), std::thread::hardware_concurrency(),
                     isaName(bestIsa()));
}

}  // namespace dtf::bench
