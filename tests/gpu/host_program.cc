// What program.cc is with CUDA.

#include "gpu/program.h"

namespace dtf::gpu {

Program::Program(Device& device, std::vector<Launch> launches)
    : device_(device), launches_(std::move(launches)) {}
Program::~Program() = default;

void Program::launchAll() {
  for (const Launch& launch : launches_)
    launch.kernel->launch(device_, {launch.inputs.data(), launch.outputs.data(), launch.workspace});
}

void Program::run() {
  launchAll();
}

}  // namespace dtf::gpu
