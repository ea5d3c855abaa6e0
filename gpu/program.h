#pragma once

// Launches of kernels that run again and again: with CUDA one graph, captured when they run for the
// second time (the first loads the libraries' code). program.cc is CUDA's,
// tests/gpu/host_program.cc the host's.

#include <memory>
#include <vector>

#include "gpu/kernel.h"

struct CUgraphExec_st;

namespace dtf::gpu {

// A kernel with its memory, copied: the pointers don't change. Value type.
struct Launch {
  Kernel* kernel = nullptr;
  std::vector<const std::byte*> inputs;
  std::vector<std::byte*> outputs;
  std::byte* workspace = nullptr;
};

// Owns: the captured graph. Borrows: the device and the kernels.
// Threads: one at a time.  Blocks: run(), until what goes to the device has been read; profile().
// Errors: PluginError, of the kernels and of the device.
class Program {
 public:
  Program(Device& device, std::vector<Launch> launches);
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  void run();
  // That the device took for the last run, once it is done; 0 before the first.
  double seconds() const;
  // Runs once more, not captured: what the device took for each launch. Blocks.
  void profile(double* seconds);

 private:
  void launch(const Launch& one);
  void launchAll();
  [[maybe_unused]] void runOnce();
  [[maybe_unused]] void capture();

  Device& device_;
  const std::vector<Launch> launches_;
  [[maybe_unused]] CUgraphExec_st* captured_ = nullptr;
  struct Events;  // CUDA's
  std::unique_ptr<Events> events_;
  [[maybe_unused]] uint64_t launches_of_run_ = 0;
  [[maybe_unused]] bool ran_ = false;
};

}  // namespace dtf::gpu
