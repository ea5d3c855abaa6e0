#pragma once

// Launches of kernels for repeated runs: with CUDA one graph, captured at the second run (the first
// loads the libraries' code). program.cc is CUDA's implementation, tests/gpu/host_program.cc the
// host's.

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
// Threads: one at a time. Blocks: run(), until copies to the device have been read; profile().
// Errors: PluginError, of the kernels and of the device.
class Program {
 public:
  Program(Device& device, std::vector<Launch> launches);
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  void run();
  // Returns the device's time for the last run, after it is done; 0 before the first.
  double seconds() const;
  // Runs once more, not captured, and fills in the device's time for each launch. Blocks.
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
