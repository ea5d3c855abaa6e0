#pragma once

// A cluster of parameter servers inside this process, for runs without a network and for tests. It
// has the same shards, and so the same bits, as over RPC.

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "common/arena/gradient_buffer.h"
#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "common/exchange/exchange_client.h"
#include "common/exchange/pending_exchange.h"
#include "common/exchange/step_agreement.h"
#include "common/optimizer/parameter_store.h"
#include "common/replication/answer.h"
#include "common/shard/shard.h"

namespace dtf::exchange {

// Owns: the shards of `ps_tasks` parameter servers, and the lock that makes each call to them one
// turn of a loop.
// Borrows: `clock` and `runner` (must outlive this).
// Threads: thread-safe.  Must outlive its clients.
class LocalCluster {
 public:
  // No worker loses its lease by time: threads of one process don't get lost one by one. `runner`
  // must call `done` from start(), as there is no loop here; null: in place.
  LocalCluster(uint32_t ps_tasks, uint32_t workers, const Clock& clock,
               Duration timeout = std::chrono::seconds(60),
               optimizer::UpdateRunner* runner = nullptr);
  ~LocalCluster();

  // Marks worker `rank` as lost, as if its process had ended.
  void loseWorker(uint32_t rank);
  shard::ShardStatus status(uint32_t ps_task);
  // Calls `question` with the shard, for queries that a client lacks. `question` has the
  // shard to itself, and must not call this cluster or its clients.
  void ask(uint32_t ps_task, const std::function<void(shard::Shard&)>& question);

 private:
  friend class LocalExchangeClient;
  class Peers;

  const uint32_t workers_;
  const Duration timeout_;
  Mutex mutex_;
  CondVar answered_;
  optimizer::InlineUpdateRunner in_place_;
  std::vector<std::unique_ptr<Peers>> peers_;
  std::vector<std::unique_ptr<shard::Shard>> shards_ DTF_GUARDED_BY(mutex_);
};

// See ExchangeClient and JobClient. It takes a growing gradient in finish().
// Owns: the gradients that it pushes, the parameters that it pulled last, and, with
// replication.overlap, the exchange thread.
// Borrows: `cluster` (must outlive this).
class LocalExchangeClient final : public ExchangeClient, public JobClient {
 public:
  LocalExchangeClient(LocalCluster& cluster, uint32_t rank);
  Incarnation incarnation() const { return incarnation_; }

  JobClient& job() override { return *this; }
  Traits traits() const override;
  void declare(const arena::ModelDeclaration& declaration,
               std::shared_ptr<optimizer::DeviceArrays> device = nullptr) override;
  replication::StepState pull(Values what = Values::kParameters) override;
  const float* view(Values what, uint32_t ps_task) const override;
  float* gradients(uint32_t ps_task) override;
  void setRows(RowsOf what, uint32_t ps_task, const arena::RowSet& rows) override;
  void begin(uint64_t step, uint32_t batch, float loss, Gradient gradient) override;
  void written(std::span<const uint64_t> elements) override;
  replication::StepState finish(const Error* failure = nullptr) override;

  void initialise(std::span<const std::span<const float>> shards, uint64_t epoch) override;
  void waitInitialised() override;
  void barrier(std::string_view name) override;
  void setEvaluating(bool evaluates) override;
  void leave() override;

 private:
  template <class Answer>
  struct Round;

  template <class Answer>
  std::function<void(Answer)> recorder(std::shared_ptr<Round<Answer>> round, size_t index);
  template <class Answer>
  void await(Round<Answer>& round, std::string_view what) DTF_REQUIRES(cluster_.mutex_);
  void take(size_t ps, const replication::PushAnswer& answer);
  replication::StepState settle();
  replication::StepState pullParameters();
  void pullAverages();
  bool overlaps() const { return declaration_.replication.overlap; }
  void turn();
  replication::StepState exchange(uint64_t step, uint32_t batch, float loss);

  LocalCluster& cluster_;
  const uint32_t rank_;
  const Incarnation incarnation_ = Incarnation::ofNow();
  arena::ModelDeclaration declaration_;
  uint64_t sequence_ = 0;
  uint64_t epoch_ = 0;            // of the parameters
  uint64_t progress_ = 0;         // bounded
  replication::StepState state_;  // the last answer
  bool is_alone_ = false;         // one worker of one ps
  bool on_device_ = false;
  std::vector<arena::GradientBuffer> gradients_;
  std::vector<arena::GradientBuffer> pushed_;  // in an exchange, while others are written
  std::vector<std::shared_ptr<const arena::ParameterVersion>> parameters_;
  std::vector<std::shared_ptr<const arena::ParameterVersion>>
      read_;  // in use by the computation meanwhile
  std::vector<std::shared_ptr<const arena::ParameterVersion>> averages_;
  std::optional<Settlement> settlement_;  // once declared
  PendingExchange pending_;               // last: its thread uses the rest
};

}  // namespace dtf::exchange
