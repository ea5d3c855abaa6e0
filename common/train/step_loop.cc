#include "common/train/step_loop.h"

#include "common/base/trace.h"

namespace dtf::train {

namespace {

ps::StepState trainBatch(ps::ParameterClient& client, StepWorker& worker,
                         const ps::StepState& due) {
  const trace::Span whole("batch");
  const float loss = worker.compute(due);
  ps::StepState state;
  {
    const trace::Span span("push, wait, receive");
    state = client.exchange(due.next_step, due.next_batch, loss);
  }
  if (state.outcome == ps::Outcome::kWentBack) {
    worker.onWentBack(state);
  } else {
    worker.onAnswer(due, state);
  }
  return state;
}

}  // namespace

ps::StepState trainSteps(ps::ParameterClient& client, StepWorker& worker) {
  ps::StepState state = client.pull();
  worker.onFirst(state);
  while (!state.done) {
    trace::onStep(state.next_step);
    worker.onDue(state);
    state = trainBatch(client, worker, state);
    if (state.outcome != ps::Outcome::kWentBack) worker.afterBatch(state);
  }
  trace::endStep();
  return state;
}

}  // namespace dtf::train
