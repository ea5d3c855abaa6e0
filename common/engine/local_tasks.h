#pragma once

// The tasks of a session, as devices of this process.

#include <memory>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/ids.h"
#include "common/engine/device_queue.h"
#include "common/engine/queue_store.h"
#include "common/engine/registered_part.h"
#include "common/engine/rendezvous.h"
#include "common/engine/step_watch.h"
#include "common/engine/tasks.h"
#include "common/engine/variable_store.h"

namespace dtf::engine {

// A thread for each device, in the order of `devices`, and the map by which parts find both.
// Owns: the threads. Borrows: devices and their kernels.
class DeviceThreads {
 public:
  explicit DeviceThreads(const std::vector<SessionDevice>& devices,  // distinct
                         const MakeDeviceQueue& make_queue = makeDeviceThread);

  const PlanDevices& devices() const { return devices_; }
  const std::vector<graph::DeviceName>& names() const { return names_; }
  bool canRun(const graph::Node& node, const graph::DeviceName& device) const;

 private:
  std::vector<graph::DeviceName> names_;
  std::vector<std::unique_ptr<DeviceQueue>> queues_;
  PlanDevices devices_;
};

// Returns whether an op needs no kernel: a compiled step omits it, or binds it, as placeholders and
// variables.
bool needsNoKernel(const graph::Node& node);

// State shared by the sessions of one process: its devices, and the variables and queues on them.
struct LocalProcess {
  explicit LocalProcess(const std::vector<SessionDevice>& devices) : threads(devices) {}
  VariableStore variables;
  QueueStore queues;
  DeviceThreads threads;  // last: its threads use the others
};

// Tensors pass between devices by reference, all through one rendezvous.
// Owns: the process's state, shared with other sessions' tasks. Borrows: devices and kernels.
// Threads, blocking, errors: as Tasks.
class LocalTasks final : public Tasks {
 public:
  // `step_max`: the deadline of a step, which then fails with kDeadline between two kernels.
  static constexpr Duration kStepMax = std::chrono::seconds(600);
  explicit LocalTasks(std::shared_ptr<LocalProcess> process, Duration step_max = kStepMax);
  ~LocalTasks() override;

  const std::vector<graph::DeviceName>& devices() const override {
    return process_->threads.names();
  }
  bool canRun(const graph::Node& node, const graph::DeviceName& device) const override;
  bool withCpu(const UseCpu& use) override;
  std::unique_ptr<PlanParts> registerPlan(std::vector<TaskPart> parts) override;
  void setVariable(const graph::Node& variable, const Tensor& value) override;
  void reset(const std::string& container) override;
  void abortSteps(const Error& cause) override { watch_.abortAll(cause); }
  RendezvousLoad load() const override { return rendezvous_.load(); }

 private:
  class Plan;

  const Incarnation incarnation_;
  Rendezvous rendezvous_;
  const std::shared_ptr<LocalProcess> process_;
  const Duration step_max_;
  StepWatch watch_;
};

// Makes a tensor with these bytes.
Tensor toTensor(const graph::TensorSpec& spec, Bytes bytes);

}  // namespace dtf::engine
