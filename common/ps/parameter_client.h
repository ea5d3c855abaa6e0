#pragma once

// How a worker talks to all parameter servers of its job. The training loop sees only this
// interface; over the network it is wire/rpc_parameter_client.h, in one process
// LocalParameterClient (local_parameter_client.h).
//
// Life of a client: declare() -> [chief: initialise()] -> waitInitialised() -> pull() ->
// exchange()* -> finish(). See common/README.md, "the life of a step".

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/cluster/spec.h"
#include "common/ps/device_arrays.h"
#include "common/ps/parameter_layout.h"
#include "common/ps/row_set.h"

namespace dtf::ps {

// Something that a job was told, by the name that it has in TRAIN.yaml ("data.seed"), as text.
struct Setting {
  std::string name;
  std::string value;
  bool operator==(const Setting&) const = default;
};

// The data of a job that trains on every example once an epoch (cluster/batch_plan.h). A ps weighs
// gradients by it.
struct EpochData {
  uint64_t examples = 0;    // 0: a job of whole batches
  uint64_t batch_size = 0;  // likewise
  bool operator==(const EpochData&) const = default;
};

// What all workers of a job must agree on; the ps compares them and refuses a worker that differs.
struct ModelDeclaration {
  ParameterLayout layout;
  cluster::OptimizerSpec optimizer;
  cluster::ReplicationSpec replication;  // replicas filled in: no zeros
  uint64_t steps = 0;                    // global steps until the job is done
  // What a ps has no other use for: what the model computes, the data, the seed, the batch size.
  std::vector<Setting> settings;
  EpochData epochs{};
  bool operator==(const ModelDeclaration&) const = default;
};

// What became of a push. A value that callers branch on, never an error.
enum class Outcome : uint8_t {
  kApplied = 1,  // the gradient is in the parameters that came back
  kQueued =
      2,  // sync, several batches a step: kept; more of this worker's batches are due for this step
  kStale = 3,     // too late: the step was decided without it; it has no effect
  kWentBack = 4,  // the ps have gone back to an earlier cut meanwhile: it has no effect, and the
                  // parameters that came are of that cut or later
};

// Bounded: what a worker's progress begins with, and that of one that is told that the job is done,
// for whom nobody waits.
inline constexpr uint64_t kProgressFirst = 1;
inline constexpr uint64_t kProgressEnd = std::numeric_limits<uint64_t>::max();

// What a pull asks for beyond the newest parameters.
struct Wanted {
  std::optional<uint64_t> step;  // sync: the parameters of that very step
  uint64_t progress = 0;         // bounded: tells it to other ps than ps/0; 0: nothing yet
  bool operator==(const Wanted&) const = default;
};

// The answer to a pull or an exchange, the same on every ps.
struct StepState {
  Outcome outcome = Outcome::kApplied;
  // async: updates applied so far. sync: steps decided so far. Counted by ps/0 in async mode.
  uint64_t global_step = 0;
  // What the worker computes next. sync: the step to contribute to. async: this worker's own count.
  uint64_t next_step = 0;
  uint32_t next_batch =
      0;  // which of this worker's batches of next_step (sync with several batches per worker)
  bool done = false;  // nothing more to compute: finish
  // async: updates between the parameters that the gradient was computed from and its own, on ps/0:
  // by others, and where exchanges overlap this worker's own one before
  uint64_t staleness = 0;
  // Of the batches behind the parameters that came. sync: the mean over the step's contributions;
  // async: the caller's own.
  float loss = 0;
  // Of the parameters: see ps/epoch.h. The gradient that is computed from them carries it back.
  uint64_t epoch = 0;
  // bounded: how far this worker is, in steps from kProgressFirst on, as ps/0 says it, and as the
  // worker has told the other ps; 0: not yet. See AsyncCoordinator.
  uint64_t progress = 0;
  bool operator==(const StepState&) const = default;
};

// Owns: connections and buffers.
// Threads: one training thread uses it.
// Blocks: each call until its answer or its deadline.
// Errors: kUnavailable when a ps is lost, kDeadline when one does not answer in time (the message
// names it), kBadConfig when the ps refuses the declaration. After an error the client is of no
// more use.
class ParameterClient {
 public:
  virtual ~ParameterClient() = default;

  // Before declare(), of a client whose only ps is in its own process, for its only worker: the
  // parameters are on `device` from now on. exchange() then takes the gradient that lies there, and
  // the others bring what is asked for.
  virtual void keepOn(std::shared_ptr<DeviceArrays> device) {
    (void)device;
    DTF_CHECK_MSG(false, "other processes hold the parameters of this client");
  }

  virtual void declare(const ModelDeclaration& declaration) = 0;

  // The chief brings the initial values: one arena per ps task, of that shard's `elements`. If the
  // ps holds values already (a restarted chief), they stay and the call does nothing. `epoch`: of
  // these values, see ps/epoch.h.
  virtual void initialise(std::span<const std::span<const float>> shards, uint64_t epoch) = 0;

  // Blocks until the chief has initialised every ps. Others wait here.
  virtual void waitInitialised() = 0;

  // Fetches parameters without pushing. parameters() is valid afterwards.
  virtual StepState pull() = 0;

  // The parameters of the last pull() or exchange() that brought some: per ps task the arena's
  // first element, in place in the receive buffer, aligned to 8 bytes (to 64 when large). Valid
  // until the next pull(), or the next exchange() of a step's last batch: an answer kQueued leaves
  // them as they are.
  virtual const float* parameters(uint32_t ps_task) const = 0;

  // Fetches the moving averages that the optimizer keeps of the parameters, as they are now; each
  // ps answers with those after its own newest update. parameters() stay. Error kBadConfig when
  // none are kept.
  virtual void pullAverages() = 0;
  // Laid out as parameters() are. Valid until the next call.
  virtual const float* averages(uint32_t ps_task) const = 0;

  // Where the caller writes its gradients before exchange(): per ps task an arena of the shard's
  // layout (of its dense variables), aligned to 64 bytes, padding zero. Owned by the client; may be
  // written again once exchange() has returned.
  virtual float* gradients(uint32_t ps_task) = 0;

  // Of a shard with sparse variables: how many rows of each slice the next gradients have. Their
  // ids and values are written behind the dense elements, as gradient_layout.h has it. May move
  // gradients(); the dense elements that were written stay. Without it the gradient has the rows
  // that its arena had last, at first none.
  virtual void setRows(uint32_t ps_task, std::span<const uint32_t> row_counts) = 0;

  // Whether parameters can come as those rows alone that a batch looks up, of sparse variables.
  virtual bool bringsRows() const { return false; }
  // The next pull() or exchange() needs to bring, of that shard, only its dense variables and these
  // rows: of the others parameters() has earlier values then, or none. Where memory is shared it
  // brings all. A set without fault (row_set.h). Without a call before it, it brings all.
  virtual void wantRows(uint32_t ps_task, const RowSet& rows) {
    (void)ps_task, (void)rows;
    DTF_CHECK_MSG(false, "this client brings all parameters");
  }
  // Whether parameters() are all of them, as the ps hold them: not where rows have come, or what
  // travels is rounded. Of the last call.
  virtual bool bringsWhole() const { return true; }
  // For those who look at more than a batch does. All parameters as they are now, beside
  // parameters(), which stay: of each ps those after its own newest update.
  virtual void pullWhole() { DTF_CHECK_MSG(false, "this client brings all parameters"); }
  // Laid out as parameters() are. Valid until the next call.
  virtual const float* whole(uint32_t ps_task) const {
    (void)ps_task;
    DTF_CHECK_MSG(false, "this client brings all parameters");
    return nullptr;
  }

  // Pushes the gradient arenas for (`step`, `batch`), as the last StepState named them, and waits
  // for the answer: kApplied and kStale come with fresh parameters, kQueued without. `loss` is that
  // of the batch.
  virtual StepState exchange(uint64_t step, uint32_t batch, float loss) = 0;

  // Of a job with replication.overlap, whose clients have two of each arena: begins an exchange
  // that goes on while the caller computes. Returns at once. Until finishExchange(), gradients()
  // and setRows() are of the other arena, what parameters() has returned stays, and no other call
  // may be made.
  virtual void startExchange(uint64_t step, uint32_t batch, float loss) {
    (void)step, (void)batch, (void)loss;
    DTF_CHECK_MSG(false, "this client waits for each exchange");
  }
  // Its answer, as from exchange().
  virtual StepState finishExchange() {
    DTF_CHECK_MSG(false, "this client waits for each exchange");
    return {};
  }

  // Whether an exchange is worth beginning before its gradient is whole: some of it has a way to
  // go, beside the computation. May change with every exchange().
  virtual bool streamsGradients() const { return false; }
  // Begins an exchange whose gradient is still being written, and returns at once. Until
  // finishPush() no other call may be made but gradients(), which are those that leave, and
  // gradientsWritten(); what parameters() has returned stays.
  virtual void startPush(uint64_t step, uint32_t batch, float loss) {
    (void)step, (void)batch, (void)loss;
    DTF_CHECK_MSG(false, "this client takes whole gradients");
  }
  // Per ps task: so many elements of its gradient, from the first on, are final. They only rise.
  virtual void gradientsWritten(std::span<const uint64_t> elements) {
    (void)elements;
    DTF_CHECK_MSG(false, "this client takes whole gradients");
  }
  // Its answer, as from exchange(). All elements are final.
  virtual StepState finishPush() {
    DTF_CHECK_MSG(false, "this client takes whole gradients");
    return {};
  }
  // In its place, once computing has failed with `why`: the gradient has no effect, and the client
  // is of no more use.
  virtual void abandonPush(const Error& why) {
    (void)why;
    DTF_CHECK_MSG(false, "this client takes whole gradients");
  }

  // All workers of the job arrive at the barrier `name` (on ps/0) before any leaves it, or its
  // deadline passes.
  virtual void barrier(std::string_view name) = 0;

  // While the caller evaluates, between two steps: others that wait for its next gradient have no
  // deadline for that, for timeouts.finish_seconds at most.
  virtual void setEvaluating(bool evaluates) { (void)evaluates; }

  // Tells every ps that this worker is done with it. When all workers have, the ps end. Call it
  // last.
  virtual void finish() = 0;
};

}  // namespace dtf::ps
