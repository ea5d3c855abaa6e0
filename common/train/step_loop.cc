#include "common/train/step_loop.h"

#include <exception>
#include <optional>

#include "common/base/error.h"
#include "common/base/trace.h"

namespace dtf::train {

namespace {

void tell(StepWorker& worker, const replication::StepState& due,
          const replication::StepState& state) {
  if (state.outcome == replication::Outcome::kWentBack) {
    worker.onWentBack(state);
  } else {
    worker.onAnswer(due, state);
  }
}

Error errorOf(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const Error& error) {
    return error;
  } catch (const std::exception& other) {
    return {ErrorCode::kInternal, other.what()};
  }
}

// On failure, ends an exchange that has begun, so that nobody waits for the rest of the gradient.
float computeBatch(exchange::ExchangeClient& client, StepWorker& worker,
                   const replication::StepState& due) {
  try {
    const float loss = worker.compute(due);
    worker.beforePush(due);
    return loss;
  } catch (...) {
    if (worker.hasBegunExchange()) {
      const Error failure = errorOf(std::current_exception());
      client.finish(&failure);
    }
    throw;
  }
}

replication::StepState finish(exchange::ExchangeClient& client) {
  const trace::Span span("wait for the exchange");
  return client.finish();
}

replication::StepState pushPull(exchange::ExchangeClient& client, const replication::StepState& due,
                                float loss) {
  const trace::Span span("push, wait, receive");
  return exchange::pushPull(client, due.next_step, due.next_batch, loss);
}

replication::StepState trainBatch(exchange::ExchangeClient& client, StepWorker& worker,
                                  const replication::StepState& due) {
  const trace::Span whole("batch");
  const float loss = computeBatch(client, worker, due);
  const replication::StepState state =
      worker.hasBegunExchange() ? finish(client) : pushPull(client, due, loss);
  tell(worker, due, state);
  return state;
}

// Returns the batch that an async worker computes after `due`, unless the answer changes that.
// Returns nullopt if the job is probably done by then.
std::optional<replication::StepState> dueBehind(const replication::StepState& due, uint64_t steps) {
  if (due.global_step + 1 >= steps) return std::nullopt;
  replication::StepState next = due;
  ++next.next_step;
  return next;
}

// A batch with its gradient, not yet pushed.
struct Computed {
  replication::StepState due;
  float loss = 0;
  std::exception_ptr failure;  // instead of a gradient; thrown only if the batch is due
};

std::optional<Computed> computeAhead(StepWorker& worker, const replication::StepState& due,
                                     uint64_t steps) {
  const std::optional<replication::StepState> next = dueBehind(due, steps);
  if (!next) return std::nullopt;
  Computed batch{*next, 0, nullptr};
  try {
    batch.loss = worker.compute(*next);
  } catch (...) {
    batch.failure = std::current_exception();
  }
  return batch;
}

bool asksFor(const replication::StepState& answer, const std::optional<Computed>& batch) {
  return batch && !answer.done && answer.outcome != replication::Outcome::kWentBack &&
         answer.next_step == batch->due.next_step && answer.next_batch == batch->due.next_batch;
}

// Pulls the rows of the due batch if the last answer brought another's. That happens at the start,
// and if the due batch isn't the expected one: for example, for a late backup worker.
replication::StepState bringRows(exchange::ExchangeClient& client, StepWorker& worker,
                                 replication::StepState state, bool is_first) {
  while (!state.done && !worker.hasRowsOf(state)) {
    const trace::Span span("pull rows");
    worker.wantRowsOf(state);
    const replication::StepState pulled = client.pull();
    if (is_first || pulled.epoch == state.epoch)
      worker.onRows(pulled);
    else
      worker.onWentBack(pulled);
    state = pulled;
  }
  return state;
}

}  // namespace

replication::StepState trainSteps(exchange::ExchangeClient& client, StepWorker& worker) {
  worker.beforeFirst();
  replication::StepState state = bringRows(client, worker, client.pull(), true);
  worker.onFirst(state);
  while (!state.done) {
    trace::onStep(state.next_step);
    worker.onDue(state);
    state = trainBatch(client, worker, state);
    if (state.outcome != replication::Outcome::kWentBack) worker.afterBatch(state);
    state = bringRows(client, worker, state, false);
  }
  trace::endStep();
  return state;
}

replication::StepState trainOverlapped(exchange::ExchangeClient& client, StepWorker& worker,
                                       uint64_t steps) {
  replication::StepState state = client.pull();
  worker.onFirst(state);
  std::optional<Computed> batch;
  while (!state.done) {
    trace::onStep(state.next_step);
    const trace::Span whole("batch");
    worker.onDue(state);
    if (batch && batch->failure != nullptr) std::rethrow_exception(batch->failure);
    const float loss = batch ? batch->loss : worker.compute(state);
    worker.beforePush(state);
    client.begin(state.next_step, state.next_batch, loss, exchange::Gradient::kWhole);
    batch = computeAhead(worker, state, steps);
    const replication::StepState answer = finish(client);
    tell(worker, state, answer);
    if (answer.outcome != replication::Outcome::kWentBack) worker.afterBatch(answer);
    if (!asksFor(answer, batch)) batch = std::nullopt;
    state = answer;
  }
  trace::endStep();
  return state;
}

}  // namespace dtf::train
