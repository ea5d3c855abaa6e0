#pragma once

// A cluster of parameter servers inside this process: for runs without a network and for tests. The
// same shards, and so the same bits, as over RPC.

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "common/ps/exchange_thread.h"
#include "common/ps/gradient_buffer.h"
#include "common/ps/parameter_client.h"
#include "common/ps/shard.h"
#include "common/ps/step_agreement.h"

namespace dtf::ps {

// Owns: the shards of `ps_tasks` parameter servers, and the lock that makes each call to them one
// turn of a loop.
// Borrows: `clock` and `runner` (must outlive this).
// Threads: thread-safe.  Must outlive its clients.
class LocalCluster {
 public:
  // Workers never lose their lease by time: threads of one process don't get lost one by one.
  // `runner`: one that calls `done` from start(), as nobody runs a loop here; null: in place.
  LocalCluster(uint32_t ps_tasks, uint32_t workers, const Clock& clock,
               Duration timeout = std::chrono::seconds(60), UpdateRunner* runner = nullptr);
  ~LocalCluster();

  // As if the process of worker `rank` had ended.
  void loseWorker(uint32_t rank);
  ShardStatus status(uint32_t ps_task);
  // For what a ParameterClient has no words for: `question` has the shard to itself, and must not
  // call this cluster or its clients.
  void ask(uint32_t ps_task, const std::function<void(Shard&)>& question);

 private:
  friend class LocalParameterClient;
  class Peers;

  const uint32_t workers_;
  const Duration timeout_;
  Mutex mutex_;
  CondVar answered_;
  InlineUpdateRunner in_place_;
  std::vector<std::unique_ptr<Peers>> peers_;
  std::vector<std::unique_ptr<Shard>> shards_ DTF_GUARDED_BY(mutex_);
};

// See ParameterClient.
// Owns: the gradients that it pushes, and what it pulled last; with replication.overlap the thread
// that does it.
// Borrows: `cluster` (must outlive this).
class LocalParameterClient final : public ParameterClient {
 public:
  LocalParameterClient(LocalCluster& cluster, uint32_t rank);
  Incarnation incarnation() const { return incarnation_; }

  void keepOn(std::shared_ptr<DeviceArrays> device) override;
  void declare(const ModelDeclaration& declaration) override;
  void initialise(std::span<const std::span<const float>> shards, uint64_t epoch) override;
  void waitInitialised() override;
  StepState pull() override;
  const float* parameters(uint32_t ps_task) const override;
  void pullAverages() override;
  const float* averages(uint32_t ps_task) const override;
  float* gradients(uint32_t ps_task) override;
  void setRows(uint32_t ps_task, std::span<const uint32_t> row_counts) override;
  StepState exchange(uint64_t step, uint32_t batch, float loss) override;
  void startExchange(uint64_t step, uint32_t batch, float loss) override;
  StepState finishExchange() override;
  void barrier(std::string_view name) override;
  void finish() override;

 private:
  template <class Answer>
  struct Round;

  template <class Answer>
  std::function<void(Answer)> recorder(std::shared_ptr<Round<Answer>> round, size_t index);
  template <class Answer>
  void await(Round<Answer>& round, std::string_view what) DTF_REQUIRES(cluster_.mutex_);
  void take(size_t ps, const PushAnswer& answer);
  StepState settle();
  StepState exchangeGradients(const std::vector<GradientBuffer>& gradients, uint64_t step,
                              uint32_t batch, float loss);

  LocalCluster& cluster_;
  const uint32_t rank_;
  const Incarnation incarnation_ = Incarnation::ofNow();
  ModelDeclaration declaration_;
  uint64_t sequence_ = 0;
  uint64_t epoch_ = 0;     // of the parameters
  uint64_t progress_ = 0;  // bounded
  bool on_device_ = false;
  std::vector<GradientBuffer> gradients_;
  std::vector<GradientBuffer> pushed_;  // those that an exchange has while others are written
  std::vector<std::shared_ptr<const Snapshot>> parameters_;
  std::vector<std::shared_ptr<const Snapshot>> read_;  // by who computes during an exchange
  std::vector<std::shared_ptr<const Snapshot>> averages_;
  std::optional<Settlement> settlement_;  // once declared
  std::unique_ptr<ExchangeThread>
      beside_;  // of a job with replication.overlap; last: it uses the rest
};

}  // namespace dtf::ps
