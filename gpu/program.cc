#include "gpu/program.h"

#include <utility>

#include "gpu/cuda_error.h"

namespace dtf::gpu {
namespace {

// Ends a capture that failed half-way, so that the stream can be used again.
class Capture {
 public:
  explicit Capture(Stream stream) : stream_(stream) {
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "beginning a capture");
  }
  ~Capture() {
    if (open_) (void)take();
  }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  cudaGraph_t end() {
    cudaGraph_t graph = nullptr;
    open_ = false;
    check(cudaStreamEndCapture(stream_, &graph), "ending a capture");
    return graph;
  }

 private:
  cudaError_t take() {
    cudaGraph_t graph = nullptr;
    const cudaError_t result = cudaStreamEndCapture(stream_, &graph);
    if (graph != nullptr) (void)cudaGraphDestroy(graph);
    return result;
  }

  const Stream stream_;
  bool open_ = true;
};

}  // namespace

Program::Program(Device& device, std::vector<Launch> launches)
    : device_(device), launches_(std::move(launches)) {}

Program::~Program() {
  if (captured_ != nullptr) (void)cudaGraphExecDestroy(captured_);
}

void Program::launchAll() {
  for (const Launch& launch : launches_)
    launch.kernel->launch(device_, {launch.inputs.data(), launch.outputs.data(), launch.workspace});
  device_.fetchReport();
}

void Program::run() {
  device_.makeCurrent();
  if (captured_ != nullptr) {
    check(cudaGraphLaunch(captured_, device_.stream()), "launching a step");
    device_.countLaunches(launches_of_run_);
    return;
  }
  const uint64_t before = device_.launched();
  if (!ran_) {  // loads the code of the kernels and libraries, which a capture must not
    launchAll();
    ran_ = true;
    return;
  }
  Capture capture(device_.stream());
  launchAll();
  cudaGraph_t graph = capture.end();
  launches_of_run_ = device_.launched() - before;
  const cudaError_t made = cudaGraphInstantiate(&captured_, graph, 0);
  (void)cudaGraphDestroy(graph);
  check(made, "preparing a captured step");
  check(cudaGraphLaunch(captured_, device_.stream()), "launching a step");
}

}  // namespace dtf::gpu
