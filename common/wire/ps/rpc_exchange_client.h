#pragma once

// An exchange client over RPC: one control and one bulk connection to each ps, all ps at once.

#include <functional>
#include <memory>
#include <set>

#include "common/exchange/pending_exchange.h"
#include "common/net/caller_loop.h"
#include "common/net/reactor.h"
#include "common/wire/ps/rpc_calls.h"

namespace dtf::wire {

// See exchange::ExchangeClient and exchange::JobClient for the calls.
// Owns: an io thread for heartbeats and barriers, and the calls (rpc_calls.h). The calling thread
// moves parameters and gradients while it waits for them. A further thread moves them if the
// exchange runs while the caller computes.
// Threads: one training thread at a time; the destructor joins the io thread.
// Blocks: each call until every ps has answered, one is lost, or the deadline named in the error.
class RpcExchangeClient final : public exchange::ExchangeClient, public exchange::JobClient {
 public:
  // Starts to connect in the background, so that a worker can load its data meanwhile.
  explicit RpcExchangeClient(RpcClientOptions options);
  ~RpcExchangeClient() override;

  exchange::JobClient& job() override { return *this; }
  exchange::Traits traits() const override { return traits_; }
  void declare(const arena::ModelDeclaration& declaration,
               std::shared_ptr<optimizer::DeviceArrays> device = nullptr) override;
  replication::StepState pull(exchange::Values what = exchange::Values::kParameters) override;
  const float* view(exchange::Values what, uint32_t ps_task) const override;
  float* gradients(uint32_t ps_task) override;
  void setRows(exchange::RowsOf what, uint32_t ps_task, const arena::RowSet& rows) override;
  void reportTimes(const replication::PhaseTimes& times) override;
  void begin(uint64_t step, uint32_t batch, float loss, exchange::Gradient gradient) override;
  void written(std::span<const uint64_t> elements) override;
  replication::StepState finish(const Error* failure = nullptr) override;

  void initialise(std::span<const std::span<const float>> shards, uint64_t epoch) override;
  void waitInitialised() override;
  void barrier(std::string_view name) override;
  void setEvaluating(bool evaluates) override;
  void leave() override;

  // Requests ps/0 to end the job after the steps under way, without waiting for the reply. If ps/0
  // rejects it, `refused` gets the reason, on the io thread. Any thread, after declare().
  void requestStop(std::function<void(const Error&)> refused);

  // Reports to every ps that the job is saved, to be continued later. Before leave().
  void pause();

  // Returns the ps that have received a signal to stop. Before leave().
  std::set<uint32_t> toldToEnd();

  // Reports to every ps why this worker ends, or ends the job, and waits for their replies: see
  // ControlCalls::fail(). Any thread.
  void fail(const Error& error, FailureOf failure_of, Duration patience);

  // Fails pending and later calls with `error`. Any thread.
  void endWith(const Error& error);

  // For rpc_checkpoint_client.h, which uses the same connections.
  net::IoThread& controlThread() { return control_; }
  ControlCalls& controlCalls() { return *control_calls_; }  // control loop only

  // Between calls: return whether this worker reads the memory of every ps, and the number of
  // mapped arenas of the first ps.
  bool TEST_sharesMemory() const { return data_calls_->TEST_shareMemory(); }
  size_t TEST_arenasMapped() const { return data_calls_->TEST_arenasMapped(); }

  // The thread of heartbeats and barriers: a test that blocks it freezes the worker.
  net::IoThread& TEST_control() { return control_; }

 private:
  void tellData(std::function<void(DataCalls&)> news);
  void ask(uint32_t ps_task, uint64_t question);
  void abandon(const Error& why);
  void onAnswer();
  bool isAside(exchange::Values what) const;

  const RpcClientOptions options_;
  std::unique_ptr<ControlCalls> control_calls_;  // lives on the control loop
  net::CallerLoop data_;
  std::unique_ptr<DataCalls> data_calls_;  // lives on the data loop
  net::IoThread control_;                  // its loop ends before the others, and posts to data_
  bool said_streamed_ = false;             // logged
  exchange::Traits traits_;                // since the last answer
  replication::StepState state_;           // of the last answer
  std::vector<arena::GradientLayout> gradients_;  // by ps
  exchange::PendingExchange pending_;
};

}  // namespace dtf::wire
