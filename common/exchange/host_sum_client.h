#pragma once

// An exchange client that sums its gradient with those of the other workers of its host
// (replication.topology), so that one gradient leaves the host.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "common/exchange/exchange_client.h"
#include "common/exchange/host_sum.h"
#include "common/replication/step_shares.h"

namespace dtf::exchange {

// See ExchangeClient. On the leader of a host, an exchange collects the gradients of the members,
// exchanges their mean with the ps, and passes the reply on. On a member, an exchange hands the
// gradient over and waits for that reply. A pull goes to the ps on every worker, and so does the
// life of the job.
//
// The mean: own gradient, then the members' by rank, in float32, weighted by their numbers of
// examples if these differ.
//
// Owns: the sum of the host.
// Borrows: `inner` (must outlive this).
// Threads: as `inner`.
// Blocks, errors: as `inner` and HostSum. declare() also joins the shared memory.
class HostSumClient final : public ExchangeClient {
 public:
  HostSumClient(ExchangeClient& inner, HostSumOptions options);

  JobClient& job() override { return inner_.job(); }
  Traits traits() const override;
  void declare(const arena::ModelDeclaration& declaration,
               std::shared_ptr<optimizer::DeviceArrays> device = nullptr) override;
  replication::StepState pull(Values what = Values::kParameters) override;
  const float* view(Values what, uint32_t ps_task) const override;
  float* gradients(uint32_t ps_task) override;
  void setRows(RowsOf what, uint32_t ps_task, const arena::RowSet& rows) override;
  void reportTimes(const replication::PhaseTimes& times) override;
  void begin(uint64_t step, uint32_t batch, float loss, Gradient gradient) override;
  void written(std::span<const uint64_t>) override {}  // it doesn't stream
  replication::StepState finish(const Error* failure = nullptr) override;

 private:
  struct Begun {
    SumStep step;
    uint32_t batch = 0;
    float loss = 0;
  };
  replication::StepState lead(const Begun& begun);
  replication::StepState pullAndPublish();
  template <class Action>
  replication::StepState reportingFailure(Action&& action);
  std::vector<uint32_t> weightsOf(uint64_t step) const;
  void addCollected(std::span<const uint32_t> weights);
  void publish(const replication::StepState& state, const std::optional<SumStep>& answers);

  ExchangeClient& inner_;
  const HostSumOptions options_;
  std::unique_ptr<HostSum> sum_;                   // once declared
  std::optional<replication::StepShares> shares_;  // likewise
  std::vector<uint64_t> elements_;                 // of each shard
  replication::StepState state_;                   // of the last reply
  std::optional<Begun> begun_;
  bool shows_sum_ = false;  // a member: the parameters came with a reply of the leader
};

}  // namespace dtf::exchange
