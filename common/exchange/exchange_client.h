#pragma once

// A worker's exchange of gradients for parameters, with all parameter servers of its job. The
// training loop sees only this interface. wire/ps/rpc_exchange_client.h implements it over the
// network, LocalExchangeClient (local_exchange_client.h) in one process.
//
// Life of a client: declare() -> [chief: job().initialise()] -> job().waitInitialised() -> pull()
// -> (begin() -> finish())* -> job().leave(). See common/README.md, "the life of a step".
//
// An exchange is begun and finished. Two things may go on in between, if the client's traits() have
// them: the rest of the same gradient is computed (streaming), or the next batch (overlap).

#include <cstdint>
#include <memory>
#include <span>

#include "common/arena/model_declaration.h"
#include "common/arena/row_set.h"
#include "common/base/error.h"
#include "common/exchange/job_client.h"
#include "common/optimizer/device_arrays.h"
#include "common/replication/phase_times.h"
#include "common/replication/step_state.h"

namespace dtf::exchange {

// The abilities of a client, once the model is declared to it.
struct Traits {
  // A pull or an exchange can bring, of sparse variables, only the rows that a batch looks up.
  bool brings_rows = false;
  // It pays to begin an exchange before its gradient is whole, because part of the gradient can be
  // sent beside the computation. May change with every exchange.
  bool streams = false;
  // An exchange of a whole gradient goes on while the caller computes the next batch: the job has
  // replication.overlap.
  bool overlaps = false;
  // declare() accepts a device that keeps the parameters.
  bool on_device = false;
  // The last pull or exchange brought all parameters as the ps hold them: neither single rows nor
  // rounded values. May change with each of them.
  bool has_whole = true;
};

// The values that a client reads from the ps.
enum class Values : uint8_t {
  kParameters,  // of a batch: what setRows() has left of them
  kAverages,    // the optimizer's moving averages, of each ps after its newest update
  // All parameters, not rounded, for uses beyond a batch: with traits().has_whole as the last pull
  // or exchange brought them, otherwise of each ps after its newest update.
  kWhole,
};

// The rows that setRows() names.
enum class RowsOf : uint8_t {
  kGradient,    // of the next gradient
  kParameters,  // of the parameters that the next pull or exchange brings
};

// The state of a gradient whose exchange begins.
enum class Gradient : uint8_t {
  kWhole,
  kGrowing,  // the caller still writes it, and calls written()
};

// Owns: connections and buffers.
// Threads: one training thread uses it.
// Blocks: each call until its answer or its deadline, unless it says that it returns at once.
// Errors: kUnavailable when a ps is lost; kDeadline, with its name, when one does not answer in
// time; kBadConfig when a ps refuses the declaration. After an error the client can't be used any
// more.
class ExchangeClient {
 public:
  virtual ~ExchangeClient() = default;

  // Returns the calls about the life of the job, on the same connections.
  virtual JobClient& job() = 0;
  // Returns at once, also while an exchange is under way.
  virtual Traits traits() const = 0;

  // Declares the model to all ps. `device`: keeps the parameters; only with traits().on_device, and
  // null otherwise. Exchanges then take the gradient that lies on the device, and view() copies
  // from it.
  virtual void declare(const arena::ModelDeclaration& declaration,
                       std::shared_ptr<optimizer::DeviceArrays> device = nullptr) = 0;

  // Fetches values without a push; view() of the same values is valid afterwards. Returns the
  // state that all ps agree on. kAverages and kWhole leave the parameters, and that state, as they
  // are. kWhole fetches nothing if traits().has_whole.
  // Errors: kBadConfig for kAverages when none are kept.
  virtual replication::StepState pull(Values what = Values::kParameters) = 0;

  // Returns the first element of the values of the ps task's arena, aligned to 8 bytes (to 64 when
  // large). kParameters: of the last pull or exchange that brought some, in place in the receive
  // buffer; valid until the next pull() of parameters, or the finish() of a step's last batch: an
  // answer kQueued leaves them as they are. The others: of the last pull() of such values; valid
  // until the next call but view() and traits().
  virtual const float* view(Values what, uint32_t ps_task) const = 0;

  // Returns the arena in which the caller writes its gradient, with the layout of the shard (of its
  // dense variables), aligned to 64 bytes, padding zero. Owned by the client. See begin() for the
  // time between begin() and finish().
  virtual float* gradients(uint32_t ps_task) = 0;

  // Names rows of a shard's sparse variables. Returns at once.
  //
  // kGradient: the next gradient has `rows`. Writes their ids behind the dense elements; the caller
  // writes their values, see gradient_layout.h. May move gradients(); the dense elements keep
  // their values. Without a call the gradient has as many rows as its arena had last, at first
  // none.
  //
  // kParameters: the next pull() of parameters, or exchange, is limited to the dense variables and
  // `rows`, a set without fault (row_set.h). Other rows of the parameters then have earlier values,
  // or none. Shared memory brings all, as a client without traits().brings_rows. Without a call all
  // come.
  virtual void setRows(RowsOf what, uint32_t ps_task, const arena::RowSet& rows) = 0;

  // Notes the times of the worker's last step, for the next exchange: in sync training ps/0 finds
  // the slowest worker with them. Returns at once. By default nobody needs them.
  virtual void reportTimes(const replication::PhaseTimes&) {}

  // Begins the exchange of the gradient for (`step`, `batch`), as the last StepState named them,
  // and returns at once. `loss`: of the batch. Until finish() the arrays that view() has returned
  // stay valid, and only traits() and these calls may be made:
  //
  // kWhole, with traits().overlaps: gradients() and setRows(kGradient), which use another arena.
  // Without it the arenas must stay as they are; finish() does the work.
  //
  // kGrowing: gradients(), which returns the arenas of this gradient, and written(). A client that
  // does not stream takes the gradient in finish().
  virtual void begin(uint64_t step, uint32_t batch, float loss, Gradient gradient) = 0;

  // Notes how many elements of each ps task's growing gradient, from the first on, are final. They
  // only rise. Returns at once.
  virtual void written(std::span<const uint64_t> elements) = 0;

  // Waits for the answer of the exchange that was begun; all elements are final. kApplied and
  // kStale come with fresh parameters, kQueued without. Its `waited` is the part of the exchange in
  // which nothing moved: the ps waited for other workers, or updated.
  // `failure`: computing the growing gradient has failed. Then the gradient has no effect, the
  // result no meaning, and the client can't be used any more.
  virtual replication::StepState finish(const Error* failure = nullptr) = 0;
};

// Exchanges a whole gradient: begin() and finish().
inline replication::StepState pushPull(ExchangeClient& client, uint64_t step, uint32_t batch,
                                       float loss) {
  client.begin(step, batch, loss, Gradient::kWhole);
  return client.finish();
}

}  // namespace dtf::exchange
