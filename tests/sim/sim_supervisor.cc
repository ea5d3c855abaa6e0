#include "tests/sim/sim_supervisor.h"

#include <fmt/format.h>

#include "common/net/error_bridge.h"
#include "common/net/timer.h"
#include "common/wire/checkpoint/shard_calls.h"
#include "common/wire/checkpoint/staying_calls.h"
#include "tests/sim/sim_ps.h"

namespace dtf::sim {

// Like RpcCheckpointClient, but a fiber waits in place of a thread.
class SimSupervisor::Client final : public checkpoint::CheckpointClient,
                                    public checkpoint::ShardTransfer {
 public:
  Client(wire::CheckpointCalls& calls, const Hooks& hooks)
      : calls_(calls), shards_(calls), staying_(*this, calls), hooks_(hooks) {}
  ~Client() noexcept override {}  // kj's promises may throw at their end
  void useScope(kj::WaitScope& scope) { scope_ = &scope; }

  std::vector<checkpoint::PsState> held() override { return await(calls_.open()); }
  std::vector<CutPosition> positions(bool hold) override { return await(calls_.positions(hold)); }
  void releaseHold() override { await(calls_.releaseHold()); }
  void startCut(const CutPosition& position, uint64_t epoch) override {
    await(calls_.startCut(position, epoch));
  }
  std::optional<uint64_t> awaitCut() override { return await(calls_.awaitCut()); }
  void callOffCuts() override { calls_.callOffCuts(); }
  void interruptCuts() override { calls_.interruptCuts(); }
  std::vector<checkpoint::SavedShard> save(const std::string& folder,
                                           const CutPosition& position) override {
    return await(calls_.save(folder, position));
  }
  std::vector<checkpoint::KeptSnapshot> snapshot(
      const checkpoint::CutName& name, const CutPosition& position,
      const std::optional<checkpoint::CutName>& keep) override {
    return await(calls_.snapshot(name, position, keep));
  }
  void forgetSnapshots() override { await(calls_.forgetSnapshots()); }
  void refill(const std::vector<uint32_t>& ps, uint64_t epoch) override {
    await(calls_.refill(ps, epoch));
    hooks_.on_refilled(ps.size());
  }
  void awaitReplicas(uint64_t epoch) override { await(calls_.awaitReplicas(epoch)); }
  void restore(const checkpoint::GoingBack& target) override {
    hooks_.on_going_back(target);
    await(calls_.restore(target));
  }
  std::vector<bool> see(const std::string& file) override { return await(calls_.see(file)); }
  checkpoint::ShardTransfer& transfer() override { return *this; }
  checkpoint::StayingShards& staying() override { return staying_; }

  std::vector<checkpoint::SavedShard> stage(const CutPosition& position) override {
    return await(shards_.stage(position));
  }
  std::string fetch(uint32_t ps_task, uint64_t offset, uint64_t file_bytes) override {
    return await(shards_.fetch(ps_task, offset, file_bytes));
  }
  void release(bool saved) override { await(shards_.release(saved)); }
  void expect(const checkpoint::CutHead& head) override { await(shards_.expect(head)); }
  void bring(uint32_t ps_task, const checkpoint::ArenaPlace& place,
             std::span<const float> values) override {
    await(shards_.bring(ps_task, place, values));
  }
  void commit(const checkpoint::GoingBack& target) override {
    hooks_.on_going_back(target);
    await(shards_.commit(target));
  }

 private:
  template <class T>
  T await(kj::Promise<T> promise) {
    try {
      return promise.wait(*scope_);
    } catch (const kj::Exception& exception) {
      throw net::toError(exception);
    }
  }
  class Staying final : public checkpoint::StayingShards {
   public:
    Staying(Client& client, wire::CheckpointCalls& calls) : client_(client), calls_(calls) {}
    std::vector<checkpoint::SavedShard> save(const std::string& name,
                                             const CutPosition& position) override {
      return client_.await(calls_.save(name, position));
    }
    std::vector<std::vector<checkpoint::FoundShard>> find(
        const std::string& name,
        const std::vector<std::vector<checkpoint::ShardFile>>& wanted) override {
      return client_.await(calls_.find(name, wanted));
    }
    std::string fetch(uint32_t ps_task, const checkpoint::StayingPiece& piece) override {
      return client_.await(calls_.fetch(ps_task, piece));
    }
    void drop(const std::string& name) override { client_.await(calls_.drop(name)); }

   private:
    Client& client_;
    wire::StayingCalls calls_;
  };

  wire::CheckpointCalls& calls_;
  wire::ShardCalls shards_;
  Staying staying_;
  const Hooks& hooks_;
  kj::WaitScope* scope_ = nullptr;
};

// Saves in a fiber, while the training fiber waits for answers of the ps.
class SimSupervisor::Runner final : public train::SaveRunner {
 public:
  Runner(const kj::FiberPool& fibers, Client& client, kj::WaitScope& training, net::Loop& loop)
      : fibers_(fibers), client_(client), training_(training), loop_(loop) {}
  ~Runner() noexcept override {}

  void start(std::function<void()> save) override {
    running_ = true;
    saving_ = fibers_
                  .startFiber([this, save = std::move(save)](kj::WaitScope& scope) {
                    client_.useScope(scope);
                    scope_ = &scope;
                    save();
                    client_.useScope(training_);
                    running_ = false;
                  })
                  .eagerlyEvaluate(nullptr);
  }
  // On the training fiber.
  void wait() override {
    if (!running_) return;
    saving_.wait(training_);
    saving_ = nullptr;
  }
  void pause(Duration length) override {
    loop_.timer().afterDelay(net::toKj(length)).wait(*scope_);
  }
  void cancel() {
    saving_ = nullptr;
    running_ = false;
  }

 private:
  const kj::FiberPool& fibers_;
  Client& client_;
  kj::WaitScope& training_;
  net::Loop& loop_;
  kj::WaitScope* scope_ = nullptr;  // of the fiber that saves
  bool running_ = false;
  kj::Promise<void> saving_ = nullptr;
};

SimSupervisor::SimSupervisor(const Environment& environment, const Plan& plan,
                             std::optional<uint64_t> reached_step, wire::ControlCalls& calls,
                             net::Loop& loop, Hooks hooks)
    : environment_(environment),
      plan_(plan),
      reached_step_(reached_step),
      loop_(loop),
      hooks_(std::move(hooks)),
      calls_(std::make_unique<wire::CheckpointCalls>(calls, 20)),
      client_(std::make_unique<Client>(*calls_, hooks_)) {}

// A save under way ends here and now: its fiber is unwound.
SimSupervisor::~SimSupervisor() noexcept(false) {
  if (runner_) runner_->cancel();
}

std::optional<uint64_t> SimSupervisor::begin(const arena::ModelDeclaration& model,
                                             Incarnation incarnation, kj::WaitScope& scope) {
  client_->useScope(scope);
  if (checkpointer_) return checkpointer_->start();
  train::CheckpointerOptions options{"sim", kRunDir, incarnation, plan_.workers, {}, {}};
  if (plan_.checkpoints) options.spec = plan_.checkpoint;
  options.snapshots = plan_.snapshot_every_steps > 0;
  options.reached_step = reached_step_;
  options.epochs = plan_.epochs;
  options.replicas = plan_.replicas;
  options.gather = plan_.gather;
  options.stay = plan_.stay;
  const cluster::JobSpec job = jobOf(plan_);
  options.hosts = job.cluster.shardHosts();
  for (const cluster::TaskSpec& host : job.cluster.hosts())
    options.ps_hosts.push_back(host.address.host);
  checkpointer_ = std::make_unique<train::Checkpointer>(environment_.disk, loop_.clock(), *client_,
                                                        model, std::move(options));
  return checkpointer_->start();
}

void SimSupervisor::start(const kj::FiberPool& fibers, kj::WaitScope& scope) {
  client_->useScope(scope);
  runner_ = std::make_unique<Runner>(fibers, *client_, scope, loop_);
  train::Supervisor::Events events;
  events.on_saved = [this](const train::SavedCheckpoint& saved) {
    hooks_.log(fmt::format("saved step {}", saved.global_step));
    hooks_.on_saved(saved.global_step);
  };
  events.on_went_back = [this](const train::WentBack& back) { hooks_.on_went_back(back); };
  events.on_hopeless = [this](const Error& error) { hooks_.on_hopeless(error); };
  train::SaveSchedule schedule{std::nullopt, plan_.snapshot_every_steps};
  if (plan_.checkpoints) schedule.checkpoint = plan_.checkpoint;
  supervisor_ = std::make_unique<train::Supervisor>(
      *checkpointer_, schedule,
      plan_.sync() ? replication::CutKind::kAtStep : replication::CutKind::kHeld, loop_.clock(),
      std::move(events), runner_.get());
  if (replaced_) supervisor_->onPsReplaced();
}

void SimSupervisor::onPsReplaced() {
  replaced_ = true;
  if (supervisor_) supervisor_->onPsReplaced();
}

void SimSupervisor::onStep(const replication::StepState& state) {
  const uint64_t failed = supervisor_->status().failed;
  supervisor_->onStep(state);
  if (supervisor_->status().failed > failed)
    hooks_.log("not saved: " + supervisor_->status().degraded);
}

bool SimSupervisor::saveAtRest() {
  try {
    supervisor_->saveAtRest();
    return plan_.checkpoints;
  } catch (const Error& error) {  // the job has its result all the same
    hooks_.log("not saved at the end: " + error.message());
    return false;
  }
}

}  // namespace dtf::sim
