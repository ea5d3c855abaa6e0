#pragma once

// A task's part of a plan, compiled for the task's devices: partitioned by device, with a
// PartProgram for each.

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/engine/device_queue.h"
#include "common/engine/executor.h"
#include "common/engine/part_program.h"
#include "common/engine/queue_store.h"
#include "common/engine/task_part.h"
#include "common/engine/variable_store.h"
#include "common/runtime/compute_pool.h"
#include "common/runtime/device.h"
#include "common/runtime/kernel.h"

namespace dtf::engine {

// A device of this process. Borrowed, with its kernels, while objects made for it live. Devices
// that share a table of kernels must not share a pool of threads in it. Programs are compiled while
// others run on the device, so making a kernel must not run any: nothing is timed (tableRule()).
struct SessionDevice {
  graph::DeviceName name;  // every field set
  runtime::Device* device = nullptr;
  const runtime::KernelTable* kernels = nullptr;
  // Threads of these kernels, which updates of optimizers use, too; null: they have one.
  runtime::ComputePool* pool = nullptr;
};

// A device with its queue, for compiling parts.
struct PlanDevice {
  SessionDevice device;
  DeviceQueue* queue = nullptr;
};
using PlanDevices = std::map<std::string, PlanDevice>;  // by full name

// Owns: the programs and folded values; variables and queues together with their stores. Borrows:
// devices and their queues of work.
// Threads: thread-compatible; it runs one step at a time.
// Blocks: the constructor, while kernels are made; never for the device, which may be busy with a
// long step of another session.
// Errors: the constructor: as PartProgram, VariableStore and QueueStore, with the node;
// kUnavailable without memory.
class RegisteredPart {
 public:
  // Edges between its own devices get numbers from `first_own_edge` on. `part` was made by a plan,
  // or checked (checkTaskPart()).
  RegisteredPart(TaskPart part, const PlanDevices& devices, uint32_t first_own_edge,
                 VariableStore& variables, QueueStore& queues);

  // The specs of a step's feeds, parallel to TaskPart::feeds.
  const std::vector<graph::TensorSpec>& feeds() const { return feed_specs_; }
  const std::vector<graph::TensorSpec>& fetches() const { return fetch_specs_; }
  uint32_t ownEdges() const { return own_edges_; }

  // Adds the step's work to `parts`; all arguments must stay valid until the step has ended.
  // `trace`: see StepPart.
  void addStep(std::span<const Bytes> feeds, std::vector<StepPart>& parts,
               const std::shared_ptr<trace::StepTrace>& trace = nullptr);

  // Returns fetch `i` after the step; `parts` were added by addStep(). Valid until the next step.
  Bytes fetch(size_t i, std::span<const StepPart> parts) const;

 private:
  struct Device {
    PartProgram program;
    DeviceQueue* queue = nullptr;
    std::vector<Bytes> folded;  // by program.feeds(): empty if a step feeds it
    std::vector<size_t> feeds;  // parallel: index into TaskPart::feeds
    std::vector<std::shared_ptr<Variable>> variables;  // by program.variables()
    std::vector<std::shared_ptr<FifoQueue>> queues;    // by program.queues()
  };
  struct Fetch {
    size_t device = 0, index = 0;
  };

  void bind(Device& device, const std::map<std::string, size_t>& feed_of, VariableStore& variables,
            QueueStore& queues);

  const std::map<std::string, Tensor> folded_;
  std::vector<graph::TensorSpec> feed_specs_, fetch_specs_;
  std::vector<Device> devices_;  // in order of device names
  std::vector<Fetch> fetches_;
  uint32_t own_edges_ = 0;
};

}  // namespace dtf::engine
