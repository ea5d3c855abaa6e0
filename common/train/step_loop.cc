#include "common/train/step_loop.h"

#include <exception>
#include <optional>

#include "common/base/error.h"
#include "common/base/trace.h"

namespace dtf::train {

namespace {

void tell(StepWorker& worker, const ps::StepState& due, const ps::StepState& state) {
  if (state.outcome == ps::Outcome::kWentBack) {
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

// Where that fails, what has left of the gradient must not be waited for.
float computeBatch(ps::ParameterClient& client, StepWorker& worker, const ps::StepState& due) {
  try {
    const float loss = worker.compute(due);
    worker.beforePush(due);
    return loss;
  } catch (...) {
    if (worker.hasStartedPush()) client.abandonPush(errorOf(std::current_exception()));
    throw;
  }
}

ps::StepState finishPush(ps::ParameterClient& client) {
  const trace::Span span("wait for the exchange");
  return client.finishPush();
}

ps::StepState exchange(ps::ParameterClient& client, const ps::StepState& due, float loss) {
  const trace::Span span("push, wait, receive");
  return client.exchange(due.next_step, due.next_batch, loss);
}

ps::StepState trainBatch(ps::ParameterClient& client, StepWorker& worker,
                         const ps::StepState& due) {
  const trace::Span whole("batch");
  const float loss = computeBatch(client, worker, due);
  const ps::StepState state =
      worker.hasStartedPush() ? finishPush(client) : exchange(client, due, loss);
  tell(worker, due, state);
  return state;
}

// What an async worker computes behind `due`, unless its answer says otherwise. None: the job is
// likely to be done by then.
std::optional<ps::StepState> dueBehind(const ps::StepState& due, uint64_t steps) {
  if (due.global_step + 1 >= steps) return std::nullopt;
  ps::StepState next = due;
  ++next.next_step;
  return next;
}

// A batch with its gradient, not yet pushed.
struct Computed {
  ps::StepState due;
  float loss = 0;
  std::exception_ptr failure;  // in place of both; it counts only where the batch is asked for
};

ps::StepState finish(ps::ParameterClient& client) {
  const trace::Span span("wait for the exchange");
  return client.finishExchange();
}

std::optional<Computed> computeAhead(StepWorker& worker, const ps::StepState& due, uint64_t steps) {
  const std::optional<ps::StepState> next = dueBehind(due, steps);
  if (!next) return std::nullopt;
  Computed batch{*next, 0, nullptr};
  try {
    batch.loss = worker.compute(*next);
  } catch (...) {
    batch.failure = std::current_exception();
  }
  return batch;
}

bool asksFor(const ps::StepState& answer, const std::optional<Computed>& batch) {
  return batch && !answer.done && answer.outcome != ps::Outcome::kWentBack &&
         answer.next_step == batch->due.next_step && answer.next_batch == batch->due.next_batch;
}

// The rows of the batch that is due, where the last answer was of another's: at the start, and
// where that batch isn't the one that was to be next, as of a backup worker that was late.
ps::StepState bringRows(ps::ParameterClient& client, StepWorker& worker, ps::StepState state,
                        bool is_first) {
  while (!state.done && !worker.hasRowsOf(state)) {
    const trace::Span span("pull rows");
    worker.wantRowsOf(state);
    const ps::StepState pulled = client.pull();
    if (is_first || pulled.epoch == state.epoch)
      worker.onRows(pulled);
    else
      worker.onWentBack(pulled);
    state = pulled;
  }
  return state;
}

}  // namespace

ps::StepState trainSteps(ps::ParameterClient& client, StepWorker& worker) {
  worker.beforeFirst();
  ps::StepState state = bringRows(client, worker, client.pull(), true);
  worker.onFirst(state);
  while (!state.done) {
    trace::onStep(state.next_step);
    worker.onDue(state);
    state = trainBatch(client, worker, state);
    if (state.outcome != ps::Outcome::kWentBack) worker.afterBatch(state);
    state = bringRows(client, worker, state, false);
  }
  trace::endStep();
  return state;
}

ps::StepState trainOverlapped(ps::ParameterClient& client, StepWorker& worker, uint64_t steps) {
  ps::StepState state = client.pull();
  worker.onFirst(state);
  std::optional<Computed> batch;
  while (!state.done) {
    trace::onStep(state.next_step);
    const trace::Span whole("batch");
    worker.onDue(state);
    if (batch && batch->failure != nullptr) std::rethrow_exception(batch->failure);
    const float loss = batch ? batch->loss : worker.compute(state);
    worker.beforePush(state);
    client.startExchange(state.next_step, state.next_batch, loss);
    batch = computeAhead(worker, state, steps);
    const ps::StepState answer = finish(client);
    tell(worker, state, answer);
    if (answer.outcome != ps::Outcome::kWentBack) worker.afterBatch(answer);
    if (!asksFor(answer, batch)) batch = std::nullopt;
    state = answer;
  }
  trace::endStep();
  return state;
}

}  // namespace dtf::train
