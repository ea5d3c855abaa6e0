#pragma once

// The protocol between a worker and its ps, without the computation. workerd's training loop and
// the simulator's workers both run it.

#include "common/exchange/exchange_client.h"

namespace dtf::train {

// The work of a worker between two calls of its client. Called on the thread of trainSteps().
class StepWorker {
 public:
  virtual ~StepWorker() = default;

  // Returns whether the parameters have the rows of the due batch. Only a client that brings the
  // rows of one batch may lack them.
  virtual bool hasRowsOf(const replication::StepState&) { return true; }
  // Requests the rows of the due batch; a pull() follows.
  virtual void wantRowsOf(const replication::StepState&) {}
  // Called before the first pull(), whose answer names the first batch.
  virtual void beforeFirst() {}
  // A pull() brought rows, without a change of the epoch. `state` may be the end of the job.
  virtual void onRows(const replication::StepState&) {}

  // The first parameters have arrived.
  virtual void onFirst(const replication::StepState& state) = 0;
  // `state` is the last answer of the ps, and not the end of the job. The batch it asks for is
  // computed next, unless it has been computed ahead.
  virtual void onDue(const replication::StepState& state) = 0;
  // Computes the due batch and returns its loss. May call only gradients() of the client, as an
  // exchange may be under way. In trainSteps() it may begin the exchange of the batch, whose
  // gradient then grows.
  virtual float compute(const replication::StepState& due) = 0;
  // Returns whether the last compute() began an exchange, even if it failed.
  virtual bool hasBegunExchange() const { return false; }
  // Puts the gradient of the last computed batch into the client's arenas. Its exchange begins
  // next, or is under way.
  virtual void beforePush(const replication::StepState&) {}
  // The ps have answered the gradient of `due`.
  virtual void onAnswer(const replication::StepState& due, const replication::StepState& state) = 0;
  // Called instead of onAnswer() if the ps went back to an earlier cut: the gradient had no effect.
  // Training goes on from `state`.
  virtual void onWentBack(const replication::StepState& state) = 0;
  // Called after onAnswer(), for work outside the batch.
  virtual void afterBatch(const replication::StepState&) {}
};

// Pulls, then computes and exchanges one batch after the other, until the ps report that the job is
// done. Returns their last answer.
// Errors: as the client and the worker; they end the loop.
replication::StepState trainSteps(exchange::ExchangeClient& client, StepWorker& worker);

// As trainSteps(), for a job of `steps` with replication.overlap. While a gradient travels, the
// next batch is computed from parameters that lack that gradient (pipelined SGD,
// https://arxiv.org/abs/1811.03619). If the answer asks for another batch, the computed one is
// dropped, even if it failed: at the end of the job, and after the ps went back.
replication::StepState trainOverlapped(exchange::ExchangeClient& client, StepWorker& worker,
                                       uint64_t steps);

}  // namespace dtf::train
