#pragma once

// A part of the graph, compiled for one device: kernels prepared, memory planned, everything
// resolved to pointers. The caller binds its batch, the parameters it pulled and the place where
// gradients shall go, then runs the step again and again; nothing is allocated and nothing bound is
// copied (on devices that use the host's memory).

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

// What runs in a step, and the memory that it takes. Value type.
struct StepPlan {
  struct Row {
    std::string op, name;
    std::vector<graph::TensorSpec> inputs, outputs;
    std::string way;  // see Kernel::way()
  };
  std::vector<Row> kernels;  // in the order in which they run
  // Intermediate tensors and workspaces, after sharing; those of functions that are called, too.
  size_t planned_bytes = 0;
  // One line per kernel: "op name [shape, ...] -> [shape, ...] by way".
  std::string str() const;
};

// Memory of the device in which it keeps a variable from step to step, and takes its gradient.
// Borrowed.
struct KeptVariable {
  float* value = nullptr;
  float* gradient = nullptr;
};

// How what is bound moves to and from a device with memory of its own (step_segments.h). Value
// type.
struct TransferOptions {
  size_t beside_bytes =
      size_t{64} << 10;  // from here on beside the computation, else before or after all of it
  size_t bucket_bytes = size_t{4} << 20;  // of a segment
  // Above 0: a listener hears of gradients while the step runs; on a device that uses the host's
  // memory, where nothing moves, in buckets of so much, elsewhere in those that move. 0: of all at
  // the end.
  size_t told_bytes = 0;
};

// Hears of a step while it runs, on the thread that runs it, which waits meanwhile.
class StepListener {
 public:
  virtual ~StepListener() = default;
  // fetch() is of this run from now on. Once, before the step is done where
  // TransferOptions::told_bytes says so.
  virtual void onFetches() = 0;
  // These gradients, by their handles, are where they were bound, and stay as they are. Each once,
  // some of them ahead of the fetches.
  virtual void onGradients(std::span<const size_t> gradients) = 0;
};

using KeptVariables = std::map<std::string, KeptVariable, std::less<>>;

struct CompileOptions {
  // Join operations where one kernel does the work of several (fusion.h). Without, the same numbers
  // within rounding.
  bool fuse = true;
  // What the operations compute in (mixed_precision.h).
  Precision precision = Precision::kFloat32;
  // Placeholders that have the same value in every step: they are constants, and not bound. Not
  // kept.
  const std::map<std::string, Tensor>* known = nullptr;
  // Variables that need not be bound: steps read and write where this says. What it refers to is
  // borrowed, the map isn't kept.
  const KeptVariables* kept = nullptr;
  TransferOptions transfers{};
};

// Owns: kernels, planned memory, constants.
// Borrows: the device (must outlive it), and until they are bound anew all bound tensors.
// Threads: thread-compatible; one thread at a time runs steps on one device.
// Blocks: run(), until the device is done.
// Errors: kBadConfig for unknown names and for a run with something unbound; those of kernels and
// the device. A loss that is NaN is not an error here.
class CompiledStep {
 public:
  ~CompiledStep();
  CompiledStep(const CompiledStep&) = delete;
  CompiledStep& operator=(const CompiledStep&) = delete;

  // Handles for binding. `placeholder` and `variable` are names of the graph. Throws kBadConfig
  // when there is none.
  int input(std::string_view placeholder) const;
  int parameter(std::string_view variable) const;
  int gradient(std::string_view variable) const;

  // `data` is dense, row-major, of the placeholder's or variable's spec, aligned to its element at
  // least, and must stay valid while the step runs (gradients and whatever fetch() refers to: until
  // they have been read). A parameter has the value that it is bound with: where a device has
  // memory of its own, one that is changed in place must be bound again.
  void bindInput(int input, const std::byte* data);
  void bindParameter(int parameter, const float* data);
  void bindGradient(int gradient, float* data);

  // How long the device computed in the last run, where it says so (Program).
  std::optional<double> deviceSeconds() const;
  // Runs once more: how long the device took for each row of plan().kernels. Empty: it doesn't say.
  std::vector<double> profile();

  // One step. Every placeholder that is read, every parameter and every gradient must have been
  // bound. `listener` may be null.
  void run(StepListener* listener = nullptr);

  // The i-th fetch as of the last run. Valid until the next run or bind; a fetched parameter, input
  // or gradient is the bound memory itself.
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

// Compiles what `fetches` and the graph's pushes (_Push, ApplyGradient, and their sparse kin) need.
// `part` may contain Placeholder, _Pull and Variable, whose values are bound. Nothing of `part` is
// kept.
// Errors: kBadConfig for ops that a step can't hold (_Send, _Recv) or the device has no kernel for;
// those of the device.
std::unique_ptr<CompiledStep> compile(const graph::Graph& part,
                                      std::span<const graph::Output> fetches, Device& device,
                                      const KernelTable& kernels, CompileOptions options = {});

// What compile() would make, without its memory. Errors: those of compile() but the device's.
StepPlan planStep(const graph::Graph& part, std::span<const graph::Output> fetches, DeviceType type,
                  const KernelTable& kernels, CompileOptions options = {});

}  // namespace dtf::runtime
