#include "tests/sim/sim_supervisor.h"

#include <fmt/format.h>

#include "common/net/error_bridge.h"
#include "common/net/timer.h"

namespace dtf::sim {

// As RpcCheckpointClient: here a fiber waits, there a thread.
class SimSupervisor::Client final : public checkpoint::CheckpointClient {
 public:
  explicit Client(wire::CheckpointCalls& calls) : calls_(calls) {}
  void useScope(kj::WaitScope& scope) { scope_ = &scope; }

  bool initialised() override { return await(calls_.open()); }
  std::vector<checkpoint::Position> positions(bool hold) override {
    return await(calls_.positions(hold));
  }
  void releaseHold() override { await(calls_.releaseHold()); }
  void startCut(const checkpoint::Position& position) override { await(calls_.startCut(position)); }
  std::optional<uint64_t> awaitCut() override { return await(calls_.awaitCut()); }
  std::vector<checkpoint::SavedShard> save(const std::string& folder,
                                           const checkpoint::Position& position) override {
    return await(calls_.save(folder, position));
  }
  void restore(const std::string& folder) override { await(calls_.restore(folder)); }

 private:
  template <class T>
  T await(kj::Promise<T> promise) {
    try {
      return promise.wait(*scope_);
    } catch (const kj::Exception& exception) {
      throw net::toError(exception);
    }
  }
  wire::CheckpointCalls& calls_;
  kj::WaitScope* scope_ = nullptr;
};

SimSupervisor::SimSupervisor(const Environment& environment, const Plan& plan,
                             wire::ControlCalls& calls, net::Loop& loop, Hooks hooks)
    : environment_(environment),
      plan_(plan),
      loop_(loop),
      hooks_(std::move(hooks)),
      calls_(std::make_unique<wire::CheckpointCalls>(calls, 20)),
      client_(std::make_unique<Client>(*calls_)) {}

SimSupervisor::~SimSupervisor() noexcept(false) {
  saving_ = nullptr;
}

bool SimSupervisor::restore(const ps::ModelDeclaration& model, Incarnation incarnation,
                            kj::WaitScope& scope) {
  client_->useScope(scope);
  train::CheckpointerOptions options{"sim", kRunDir, incarnation, plan_.workers, {}, {}};
  options.spec.keep = 0;  // all of them: each is looked at in the end
  checkpointer_ = std::make_unique<train::Checkpointer>(environment_.disk, loop_.clock(), *client_,
                                                        model, std::move(options));
  return checkpointer_->restore();
}

void SimSupervisor::save(train::Motion motion) {
  try {
    const std::optional<train::SavedCheckpoint> saved = checkpointer_->save(motion);
    if (!saved) return;
    hooks_.log(fmt::format("saved step {}", saved->global_step));
    hooks_.on_saved(saved->global_step);
  } catch (const Error& error) {  // training goes on
    hooks_.log("not saved: " + error.message());
  }
}

void SimSupervisor::start(const kj::FiberPool& fibers) {
  saving_ = fibers
                .startFiber([this](kj::WaitScope& scope) {
                  while (!stopping_) {
                    const auto most = static_cast<uint64_t>(plan_.checkpoint_pause.count());
                    const Duration pause(static_cast<int64_t>(environment_.random.below(most)));
                    loop_.timer().afterDelay(net::toKj(pause)).wait(scope);
                    if (stopping_) return;
                    client_->useScope(scope);
                    save(train::Motion::kTraining);
                  }
                })
                .eagerlyEvaluate(nullptr);
}

void SimSupervisor::stop(kj::WaitScope& scope) {
  stopping_ = true;
  saving_.wait(scope);
  saving_ = kj::READY_NOW;
}

void SimSupervisor::saveAtRest(kj::WaitScope& scope) {
  client_->useScope(scope);
  save(train::Motion::kAtRest);
}

}  // namespace dtf::sim
