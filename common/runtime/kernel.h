#pragma once

// Kernels: each computes one operation on one kind of device, prepared once for fixed shapes. The
// table of kernels is filled explicitly (registerCpuKernels(table) in main), without static
// registration, so nothing depends on link order.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/graph/graph.h"

namespace dtf::runtime {

class Device;
class KernelTable;

enum class DeviceType : uint8_t { kCpu, kGpu };

// One computation of a compiled step: a node of the graph, or several joined by fusion.h.
// Value type.
struct Operation {
  std::string name;  // the node's, for messages
  std::string op;    // "MatMul"
  graph::Attributes attributes;
  std::vector<graph::Output> inputs;
  std::vector<graph::TensorSpec> input_specs;
  std::vector<graph::Output>
      outputs;  // the graph's outputs that it computes, in the kernel's order
  std::vector<graph::TensorSpec> output_specs;

  // Like graph::Node::attribute, but returns `fallback` if the optional attribute is absent.
  template <class T>
  T attributeOr(std::string_view key, T fallback) const {
    const auto at = attributes.find(key);
    return at == attributes.end() ? fallback : std::get<T>(at->second);
  }
};

// The tensors of a kernel. A view; all memory is the device's, each pointer aligned at least to the
// size of its tensor's elements (tensors of the step itself to 64).
struct KernelArguments {
  std::span<const std::byte* const> inputs;  // by the operation's input_specs
  std::span<std::byte* const> outputs;       // by its output_specs
  std::byte* workspace = nullptr;            // workspaceBytes(), aligned to 64; contents undefined
};

// Owns: prepared state (library primitives).
// Threads: thread-compatible.
// Blocks: a CPU kernel until done; others may return when the work is queued.
// Errors: kBadData for values that the data must not contain (a label without class); kInternal if
// a library rejects a call. run() never allocates memory.
class Kernel {
 public:
  virtual ~Kernel() = default;
  virtual void run(const KernelArguments& arguments) = 0;
  virtual size_t workspaceBytes() const { return 0; }
  // Called once, before the first run(), with its device, to set up memory that lasts from run to
  // run. Errors: as Device::allocate() and compile().
  virtual void prepare(Device& device) { (void)device; }
  // Returns the bytes of device memory that prepare() allocates, without constants.
  virtual size_t preparedBytes() const { return 0; }
  // Returns the way it computes, such as "winograd"; empty if there is only one.
  virtual std::string_view way() const { return {}; }
  // Returns whether `output` may occupy exactly the memory of `input`. Only called for an input
  // that occurs once in the operation.
  virtual bool canOverwrite(int output, int input) const {
    (void)output, (void)input;
    return false;
  }
};

// Prepares a kernel for exactly this operation.
// Errors: kBadConfig if it can't compute these types or shapes.
using KernelFactory = std::function<std::unique_ptr<Kernel>(const Operation& operation)>;
// The same for an operation that calls functions; their kernels also come from the table. The
// kernel may keep a reference to the table until prepare() has returned.
using CallingKernelFactory =
    std::function<std::unique_ptr<Kernel>(const Operation& operation, const KernelTable& table)>;

// Owns: the factories.
// Threads: immutable once filled; then thread-safe.
class KernelTable {
 public:
  void add(std::string op, DeviceType device, KernelFactory factory);  // DTF_CHECKs that it is new
  void addCalling(std::string op, DeviceType device, CallingKernelFactory factory);
  bool has(std::string_view op, DeviceType device) const;
  // Errors: kBadConfig with the operation if the device has no kernel for its op.
  std::unique_ptr<Kernel> make(const Operation& operation, DeviceType device) const;
  std::vector<std::string> ops(DeviceType device) const;

 private:
  std::map<std::pair<DeviceType, std::string>, CallingKernelFactory> factories_;
};

std::string_view deviceTypeName(DeviceType type);  // "CPU", "GPU"

}  // namespace dtf::runtime
