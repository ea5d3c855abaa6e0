#include "gpu/program.h"

#include <utility>

#include "gpu/cuda_error.h"
#include "gpu/event.h"

namespace dtf::gpu {
namespace {

// Ends a failed capture, so that the stream can be used again.
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

struct Program::Events {
  Event begun, done;  // around the last run
};

Program::Program(Device& device, std::vector<Launch> launches)
    : device_(device), launches_(std::move(launches)) {
  device.makeCurrent();
  device.afterPreparing();
  events_ = std::make_unique<Events>();
}

Program::~Program() {
  if (captured_ != nullptr) (void)cudaGraphExecDestroy(captured_);
}

void Program::launch(const Launch& one) {
  one.kernel->launch(device_, {one.inputs.data(), one.outputs.data(), one.workspace});
}

void Program::launchAll() {
  for (const Launch& one : launches_) launch(one);
  device_.fetchReport();
}

void Program::run() {
  device_.makeCurrent();
  device_.beforeProgram();
  events_->begun.record(device_.stream());
  runOnce();
  events_->done.record(device_.stream());
}

void Program::runOnce() {
  if (captured_ == nullptr &&
      !ran_) {  // loads the code of the kernels and libraries, which a capture must not
    launchAll();
    ran_ = true;
    return;
  }
  if (captured_ == nullptr) capture();
  check(cudaGraphLaunch(captured_, device_.stream()), "launching a step");
  device_.countLaunches(launches_of_run_);
}

void Program::capture() {
  const uint64_t before = device_.launched();
  Capture capture(device_.stream());
  launchAll();
  cudaGraph_t graph = capture.end();
  launches_of_run_ = device_.launched() - before;
  device_.countLaunches(-launches_of_run_);  // nothing has run yet
  const cudaError_t made = cudaGraphInstantiate(&captured_, graph, 0);
  (void)cudaGraphDestroy(graph);
  check(made, "preparing a captured step");
}

void Program::profile(double* seconds) {
  device_.makeCurrent();
  device_.beforeProgram();
  std::vector<Event> events(launches_.size() + 1);
  events[0].record(device_.stream());
  for (size_t i = 0; i < launches_.size(); ++i) {
    launch(launches_[i]);
    events[i + 1].record(device_.stream());
  }
  device_.fetchReport();
  device_.synchronise();
  for (size_t i = 0; i < launches_.size(); ++i) seconds[i] = events[i + 1].secondsSince(events[i]);
}

double Program::seconds() const {
  if (!ran_) return 0;
  return events_->done.secondsSince(events_->begun);
}

}  // namespace dtf::gpu
