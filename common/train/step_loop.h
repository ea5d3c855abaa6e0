#pragma once

// The order in which a worker and its ps take turns, apart from what the worker computes: the
// training loop of a workerd and the workers of the simulator run the same.

#include "common/ps/parameter_client.h"

namespace dtf::train {

// What one worker does between two calls of its client. Called on the thread of trainSteps().
class StepWorker {
 public:
  virtual ~StepWorker() = default;

  // Where of sparse variables only the rows of one batch come: whether those of the batch that is
  // due are there,
  virtual bool hasRowsOf(const ps::StepState&) { return true; }
  // and a pull() follows that is to bring them.
  virtual void wantRowsOf(const ps::StepState&) {}
  // The first pull() follows, which tells what is due.
  virtual void beforeFirst() {}
  // Rows came by a pull(), and `state`, of the epoch that was. Perhaps the job's end.
  virtual void onRows(const ps::StepState&) {}

  // The first parameters are there.
  virtual void onFirst(const ps::StepState& state) = 0;
  // `state` is the last answer of the ps, and not the end: the next batch is about to be computed.
  virtual void onDue(const ps::StepState& state) = 0;
  // Computes the batch that is due; returns its loss. Calls nothing of the client but gradients():
  // an exchange may be under way. In trainSteps() it may start a push of that batch.
  virtual float compute(const ps::StepState& due) = 0;
  // Whether the last compute() has, also where it failed.
  virtual bool hasStartedPush() const { return false; }
  // Has the gradient of the batch that was computed last in the client's arenas: it is pushed now,
  // or is on its way.
  virtual void beforePush(const ps::StepState&) {}
  // The gradient of `due` is answered.
  virtual void onAnswer(const ps::StepState& due, const ps::StepState& state) = 0;
  // In place of onAnswer(): the ps went back to an earlier cut, the gradient had no effect. `state`
  // is what to go on from.
  virtual void onWentBack(const ps::StepState& state) = 0;
  // After onAnswer(): what is no part of the batch.
  virtual void afterBatch(const ps::StepState&) {}
};

// Pulls, then computes and exchanges one batch after the other, until the ps say that the job is
// done. Returns their last answer.
// Errors: those of the client and of the worker, which end the loop.
ps::StepState trainSteps(ps::ParameterClient& client, StepWorker& worker);

// The same with replication.overlap, of a job of `steps`: the next batch is computed while a
// gradient travels, from parameters that lack that gradient (pipelined SGD,
// https://arxiv.org/abs/1811.03619). A batch that the answer doesn't ask for is dropped, with its
// error if it has one: at the job's end, and where the ps went back. onDue() hears each answer
// before its batch is pushed; that batch may have been computed already.
ps::StepState trainOverlapped(ps::ParameterClient& client, StepWorker& worker, uint64_t steps);

}  // namespace dtf::train
