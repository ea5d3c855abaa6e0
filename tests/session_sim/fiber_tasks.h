#pragma once

// The tasks of a session of the simulated world, for a client that runs in a fiber.

#include <kj/async.h>
#include <kj/common.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/engine/tasks.h"
#include "common/net/error_bridge.h"
#include "common/runtime/cpu_device.h"
#include "common/runtime/kernel.h"
#include "common/wire/session/session_calls.h"

namespace dtf::sim {

// The tasks of one session, as engine::Session sees them.
// Borrows: its arguments. Threads: one.
// Blocks: the fiber that calls, in virtual time. No fiber may call while it handles an exception:
// all fibers of the thread share one stack of exceptions.
// Errors: as the promises of SessionCalls.
class FiberTasks : public engine::Tasks {
 public:
  FiberTasks(wire::SessionCalls& calls, const runtime::KernelTable& kernels)
      : calls_(calls), kernels_(kernels) {}

  // Call it before anything that waits.
  void runsIn(kj::WaitScope& scope) { scope_ = &scope; }

  template <class T>
  T await(kj::Promise<T> promise) const {
    kj::WaitScope& mine = *scope_;
    const auto back = kj::defer([&] { scope_ = &mine; });
    try {
      return promise.wait(mine);
    } catch (const kj::Exception& exception) {
      throw net::toError(exception);
    }
  }

  const std::vector<graph::DeviceName>& devices() const override { return calls_.devices(); }
  bool canRun(const graph::Node& node, const graph::DeviceName&) const override;
  bool withCpu(const UseCpu& use) override;
  std::unique_ptr<engine::PlanParts> registerPlan(std::vector<engine::TaskPart> parts) override;
  void setVariable(const graph::Node& variable, const Tensor& value) override {
    await(calls_.setVariable(variable, value));
  }
  void abortSteps(const Error& cause) override { calls_.abortSteps(cause); }
  void reset(const std::string& container) override { await(calls_.reset(container)); }
  engine::RendezvousLoad load() const override { return await(calls_.load()); }

 private:
  class Plan;

  virtual void registering(uint64_t, const std::vector<engine::TaskPart>&) {}
  virtual void ended(uint64_t, uint64_t) {}

  wire::SessionCalls& calls_;
  const runtime::KernelTable& kernels_;
  runtime::CpuDevice cpu_;
  mutable kj::WaitScope* scope_ = nullptr;
  uint64_t next_plan_ = 1;
};

}  // namespace dtf::sim
