#pragma once

// One worker process of the simulated cluster: the real links and calls, driven by a training
// thread that is a fiber, in the order of calls of workerd.

#include <kj/async.h>

#include <array>
#include <functional>
#include <memory>
#include <optional>

#include "common/checkpoint/checkpoint_client.h"
#include "common/wire/ps/rpc_calls.h"
#include "tests/sim/ledger.h"
#include "tests/sim/sim_loop.h"

namespace dtf::sim {

class SimClient;
class SimSupervisor;

// Owns: the process's connections and its fiber.
// Borrows: everything it is given. Made and destroyed from events of the world.
class SimWorker {
 public:
  struct Hooks {
    std::function<void(SimWorker&)> on_joined;  // every ps has accepted the hello
    std::function<void()> on_step;              // a push was answered
    std::function<void(SimWorker&)> on_ready;   // it reports so to its launcher
    std::function<void(SimWorker&)> on_ended;   // called from an event of the world, once
    std::function<void(const std::string&)> log;
    std::function<void(uint64_t step)> on_saved;  // a checkpoint is committed
    // The chief of a job with checkpoints has looked for one. `held`: the ps hold values now, of
    // the checkpoint of `step` if there is one.
    std::function<void(bool held, std::optional<uint64_t> step)> on_restored;
    std::function<bool()> stopped;  // whether the job was asked to end
    // The step that earlier processes of the chief reached, as its launcher reports it.
    std::function<std::optional<uint64_t>()> reached_step;
    // All are at rest at that step, and it is saved.
    std::function<void(uint64_t step)> on_rest;
    // The chief takes all ps to a checkpoint; it has done so while the job lived.
    std::function<void(const checkpoint::GoingBack&)> on_going_back;
    std::function<void(size_t ps)> on_refilled;
    std::function<void()> on_went_back;
    // This worker, or the chief, has come to that moment; `is_saved`: the end is in a checkpoint.
    std::function<void(SimWorker&, Fault::Since, bool is_saved)> on_moment;
  };

  SimWorker(const Environment& environment, const Plan& plan, Ledger& ledger,
            const kj::FiberPool& fibers, uint32_t rank, uint32_t number, Hooks hooks);
  ~SimWorker() noexcept(false);

  uint32_t rank() const { return rank_; }
  uint32_t number() const { return number_; }
  const ProcessRef& process() const { return process_; }
  // It is fenced on every ps from now on: a push that it starts must have no effect.
  void setFenced() { fenced_ = true; }
  // No ps is left that has met its successor: it may be first with the new ones.
  void clearFenced() { fenced_ = false; }
  bool joined() const { return joined_; }
  bool training() const { return training_now_; }
  bool hasTrained() const { return has_trained_; }  // admitted: trains, or meets others at the end
  // The ps that has not yet answered a repeated request.
  std::optional<uint32_t> repeatsOn() const {
    return repeated_ ? std::optional(echo_ps_) : std::nullopt;
  }
  // Acts on a SIGTERM, while it trains.
  void requestStop();
  const std::optional<Error>& error() const { return error_; }
  // A ps ended before it had answered this worker's last request.
  bool finishedUnheard() const { return finished_unheard_; }

 private:
  void train(kj::WaitScope& scope);
  void finishAsChief(SimClient& client,
                     const std::function<bool(const replication::StepState&)>& is_over,
                     bool is_saved);
  bool canLeaveWithout(const Error& error) const;
  bool isOverOnceSaved(const std::function<bool()>& is_over) const;
  void join(SimClient& client, kj::WaitScope& scope);
  class Steps;
  uint64_t numberOf(const Push& push) const;
  BatchWeights weightsOf(const Push& push) const;
  bool isEmpty(const Push& push) const;
  Push pushOf(const replication::StepState& due) const;
  float loss() const { return static_cast<float>(rank_ + 1); }
  void beforePush(SimClient& client, const Push& push);
  void afterPush(SimClient& client, const Push& push, const replication::StepState& state);
  void compute(SimClient& client);
  void ask(uint32_t ps, uint64_t question);
  GradientPlace echoPlace();
  void echo(const Push& push);
  std::vector<const float*> arenas() const;

  const Environment environment_;
  const Plan& plan_;
  Ledger& ledger_;
  const kj::FiberPool& fibers_;
  const uint32_t rank_;
  const uint32_t number_;  // which process of the rank: 0, 1, ...
  const Hooks hooks_;
  const ProcessRef process_;
  SimLoop control_loop_;
  SimLoop data_loop_;
  const arena::ModelDeclaration model_;
  const std::optional<cluster::BatchPlan> batches_;  // of a job with epochs
  const wire::RpcClientOptions options_;
  std::unique_ptr<wire::ControlCalls> control_;
  std::unique_ptr<wire::DataCalls> data_;
  std::unique_ptr<SimSupervisor> supervisor_;  // the chief's, with checkpoints
  // A second bulk connection to one ps, on which an exchange is repeated.
  std::unique_ptr<wire::PsDataLink> echo_link_;
  uint32_t echo_ps_ = 0;
  bool echoing_ = false;
  bool repeated_ = false;                       // and sent, and not answered
  replication::StepState due_;                  // state before the push under way
  std::array<std::optional<Push>, 2> written_;  // pushes that the gradient arenas hold
  size_t pushes_ = 0;
  double echo_draw_ = 0;  // decides whether the push under way is repeated, and when
  kj::Promise<void> echo_ = nullptr;
  bool fenced_ = false;
  bool joined_ = false;
  bool training_now_ = false;
  bool has_trained_ = false;
  bool finished_unheard_ = false;
  std::optional<Error> error_;
  kj::Promise<void> training_ = nullptr;
};

}  // namespace dtf::sim
