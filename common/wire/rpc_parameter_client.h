#pragma once

// ParameterClient over RPC: one control and one bulk connection to each ps, all ps at once.

#include <kj/async.h>

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "common/base/mutex.h"
#include "common/net/reactor.h"
#include "common/ps/parameter_client.h"
#include "common/ps/step_agreement.h"
#include "common/wire/ps_link.h"

namespace dtf::wire {

// A promise that stays unresolved until fail(): joined to every call, so that one lost peer ends
// every wait at once. Loop-thread only.
class Abort {
 public:
  Abort();
  void fail(const Error& error);

  // `promise`, or the error of fail(), whichever comes first.
  template <class T>
  kj::Promise<T> guard(kj::Promise<T> promise) {
    return promise.exclusiveJoin(aborted_.addBranch().then([]() -> T { KJ_UNREACHABLE; }));
  }

 private:
  kj::Own<kj::PromiseFulfiller<void>> fulfiller_;
  kj::ForkedPromise<void> aborted_;
};

template <>
inline kj::Promise<void> Abort::guard(kj::Promise<void> promise) {
  return promise.exclusiveJoin(aborted_.addBranch());
}

struct RpcClientOptions {
  LinkOptions link;
  std::vector<cluster::Address> ps;  // one per ps task
};

// See ps::ParameterClient for the calls.
// Owns: two io threads (control and data), the links on them.
// Threads: the constructor's, then one training thread; the destructor joins the io threads.
// Blocks: each call until every ps has answered, one is lost, or the deadline named in the error.
class RpcParameterClient final : public ps::ParameterClient {
 public:
  // Starts to connect at once and in the background, so that a worker can load its data meanwhile.
  explicit RpcParameterClient(RpcClientOptions options);
  ~RpcParameterClient() override;

  void declare(const ps::ModelDeclaration& declaration) override;
  void initialise(std::span<const std::span<const float>> shards) override;
  void waitInitialised() override;
  ps::StepState pull() override;
  const float* parameters(uint32_t ps_task) const override;
  float* gradients(uint32_t ps_task) override;
  ps::StepState exchange(uint64_t step, uint32_t batch, float loss) override;
  void barrier(std::string_view name) override;
  void finish() override;

  // Asks ps/0 to end the job after the steps under way. Any thread, once declare() has returned.
  void requestStop();

  // For rpc_checkpoint_client.h, which speaks on the same connections.
  size_t psTasks() const { return options_.ps.size(); }
  net::IoThread& controlThread() { return control_; }
  PsControlLink& controlLink(uint32_t ps_task);               // control loop only
  kj::Promise<void> guardControl(kj::Promise<void> promise);  // fails when a ps is lost; ditto

  // The thread of heartbeats and barriers: a test that blocks it freezes the worker.
  net::IoThread& TEST_control() { return control_; }

 private:
  struct ControlSide;  // lives on the control loop
  struct DataSide;     // lives on the data loop

  void lost(const Error& error);
  void stopWanted();
  template <class Fn>
  void onEveryControl(Fn call);
  struct DataCall {
    uint32_t ps_task = 0;
    std::function<kj::Promise<ps::StepState>(PsDataLink&)> start;
  };
  void onData(const std::vector<DataCall>& calls, bool is_exchange);
  ps::StepState onEveryData(const std::function<kj::Promise<ps::StepState>(PsDataLink&)>& call,
                            bool is_exchange);
  ps::StepState settle();

  const RpcClientOptions options_;
  std::unique_ptr<ControlSide> control_side_;
  std::unique_ptr<DataSide> data_side_;
  // Pointers taken after each answer: read by the training thread between calls.
  std::vector<const float*> parameters_;
  std::vector<float*> gradients_;
  // Of the newest answers, for ps::agree().
  std::vector<ps::StepState> states_;
  std::vector<std::optional<uint64_t>> asked_;
  cluster::ReplicationSpec::Mode mode_ = cluster::ReplicationSpec::Mode::kAsync;
  net::IoThread data_;
  net::IoThread control_;  // last: its loop ends first, and posts to data_
};

}  // namespace dtf::wire
