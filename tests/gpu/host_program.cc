// What program.cc is with CUDA.

#include "gpu/program.h"

namespace dtf::gpu {

struct Program::Events {};

Program::Program(Device& device, std::vector<Launch> launches)
    : device_(device), launches_(std::move(launches)) {}
Program::~Program() = default;

void Program::launch(const Launch& one) {
  one.kernel->launch(device_, {one.inputs.data(), one.outputs.data(), one.workspace});
}

void Program::launchAll() {
  for (const Launch& one : launches_) launch(one);
}

void Program::run() {
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
