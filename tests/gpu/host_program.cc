// Runs programs on the host, in place of program.cc, which needs CUDA.

#include <atomic>
#include <cstdint>
#include <cstdlib>

#include "gpu/error.h"
#include "gpu/program.h"
#include "tests/gpu/host_libraries.h"

namespace dtf::gpu {

struct Program::Events {};

Program::Program(Device& device, std::vector<Launch> launches)
    : device_(device), launches_(std::move(launches)) {}
Program::~Program() = default;

void Program::launch(const Launch& one) {
  std::set<const std::byte*>& used = device_.libraries().used;
  used.insert(one.inputs.begin(), one.inputs.end());
  used.insert(one.outputs.begin(), one.outputs.end());
  one.kernel->launch(device_, {one.inputs.data(), one.outputs.data(), one.workspace});
}

void Program::launchAll() {
  for (const Launch& one : launches_) launch(one);
}

// After DTF_TEST_HOST_FAILS_AFTER runs of programs in a process, each further run fails; copies go
// on.
void Program::run() {
  static const char* const said = std::getenv("DTF_TEST_HOST_FAILS_AFTER");
  static std::atomic<int64_t> left = said == nullptr ? INT64_MAX : std::atoll(said);
  if (left.fetch_sub(1) <= 0)
    throw PluginError(DTF_PLUGIN_UNAVAILABLE, "The device fell off the bus (the test wants it).");
  launchAll();
}

void Program::profile(double* seconds) {
  launchAll();
  for (size_t i = 0; i < launches_.size(); ++i) seconds[i] = 0;
}

double Program::seconds() const {
  return 0;
}

}  // namespace dtf::gpu
