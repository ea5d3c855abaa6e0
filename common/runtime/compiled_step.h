#pragma once

// A part of the graph, compiled for one device: kernels prepared, memory planned, names resolved to
// pointers. The caller binds its batch, the pulled parameters and the target of the gradients, then
// runs the step repeatedly. Runs allocate nothing, and on devices that use the host's memory copy
// no bound tensor.

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/graph/graph.h"
#include "common/runtime/device.h"
#include "common/runtime/kernel.h"
#include "common/tensor/precision.h"
#include "common/tensor/tensor.h"

namespace dtf::runtime {

struct StepBody;  // step_body.h

// The kernels and the memory of a step. Value type.
struct StepPlan {
  struct Row {
    std::string op, name;
    std::vector<graph::TensorSpec> inputs, outputs;
    std::string way;  // see Kernel::way()
  };
  std::vector<Row> kernels;  // in order of execution
  // Intermediate tensors and workspaces, after sharing, called functions included.
  size_t planned_bytes = 0;
  // One line per kernel: "op name [shape, ...] -> [shape, ...] by way".
  std::string str() const;
};

// Device memory that keeps a variable from step to step, and receives its gradient. Borrowed.
struct KeptVariable {
  float* value = nullptr;
  float* gradient = nullptr;
};

// Transfers of bound tensors to and from a device with its own memory (step_segments.h). Value
// type.
struct TransferOptions {
  size_t beside_bytes =
      size_t{64} << 10;  // smaller tensors move before or after the computation, not beside it
  size_t bucket_bytes = size_t{4} << 20;  // of one segment
  // Above 0, a listener receives gradients while the step runs: on a device that uses the host's
  // memory in buckets of this size, elsewhere in the buckets of the transfers. 0: all gradients at
  // the end.
  size_t told_bytes = 0;
};

// Receives results of a step while it runs, on the thread that runs it, which waits meanwhile.
class StepListener {
 public:
  virtual ~StepListener() = default;
  // fetch() now returns results of this run. Called once; before the end of the step if
  // TransferOptions::told_bytes is above 0.
  virtual void onFetches() = 0;
  // These gradients, by their handles, are complete in their bound memory. Called once for each
  // gradient, possibly before onFetches().
  virtual void onGradients(std::span<const size_t> gradients) = 0;
};

using KeptVariables = std::map<std::string, KeptVariable, std::less<>>;

struct CompileOptions {
  // Joins operations if one kernel computes several better (fusion.h). Without it, results are the
  // same within rounding.
  bool fuse = true;
  // The number format of the operations (mixed_precision.h).
  Precision precision = Precision::kFloat32;
  // Placeholders with the same value in every step: they become constants and are not bound. Not
  // kept.
  const std::map<std::string, Tensor>* known = nullptr;
  // Variables that are not bound: steps read and write this memory. The memory is borrowed, the map
  // isn't kept.
  const KeptVariables* kept = nullptr;
  TransferOptions transfers{};
};

// Owns: kernels, planned memory, constants.
// Borrows: the device (must outlive it), and all bound tensors until they are bound anew.
// Threads: thread-compatible; one thread at a time runs steps on one device.
// Blocks: run(), until the device is done.
// Errors: kBadConfig for unknown names and for a run with unbound tensors; errors of kernels and of
// the device. A NaN loss is no error here.
class CompiledStep {
 public:
  ~CompiledStep();
  CompiledStep(const CompiledStep&) = delete;
  CompiledStep& operator=(const CompiledStep&) = delete;

  // Handles for binding. `placeholder` and `variable` are names of the graph. Errors: kBadConfig
  // for an unknown name.
  int input(std::string_view placeholder) const;
  int parameter(std::string_view variable) const;
  int gradient(std::string_view variable) const;

  // `data` is dense, row-major, with the spec of the placeholder or variable, aligned at least to
  // its element. It must stay valid while the step runs; gradients and memory returned by fetch()
  // until they have been read. A parameter has its value at the time of binding: on a device with
  // its own memory, a parameter changed in place must be bound again.
  void bindInput(int input, const std::byte* data);
  void bindParameter(int parameter, const float* data);
  void bindGradient(int gradient, float* data);

  // Returns the device's computing time of the last run, if it reports one (Program).
  std::optional<double> deviceSeconds() const;
  // Runs once more; returns the device's time for each row of plan().kernels, empty if not
  // reported.
  std::vector<double> profile();

  // Runs one step. Every placeholder that is read, every parameter and every gradient must be
  // bound. `listener` may be null.
  void run(StepListener* listener = nullptr);

  // Returns the i-th fetch of the last run. Valid until the next run or bind; a fetched parameter,
  // input or gradient is the bound memory itself.
  std::span<const float> fetch(int i) const;
  // The same of any type.
  std::span<const std::byte> fetchBytes(int i) const;

  const StepPlan& plan() const;

 private:
  friend std::unique_ptr<CompiledStep> compile(const graph::Graph&, std::span<const graph::Output>,
                                               Device&, const KernelTable&, CompileOptions);
  explicit CompiledStep(std::unique_ptr<StepBody> body);
  std::unique_ptr<StepBody> body_;
};

// Compiles the nodes needed by `fetches` and by the graph's pushes (_Push, ApplyGradient and their
// sparse forms). `part` may contain Placeholder, _Pull and Variable, whose values are bound.
// Nothing of `part` is kept.
// Errors: kBadConfig for ops that a step can't hold (_Send, _Recv) and ops without a kernel for the
// device; errors of the device.
std::unique_ptr<CompiledStep> compile(const graph::Graph& part,
                                      std::span<const graph::Output> fetches, Device& device,
                                      const KernelTable& kernels, CompileOptions options = {});

// Returns the plan that compile() would make, without allocating. Errors: as compile(), except
// errors of the device.
StepPlan planStep(const graph::Graph& part, std::span<const graph::Output> fetches, DeviceType type,
                  const KernelTable& kernels, CompileOptions options = {});

}  // namespace dtf::runtime
