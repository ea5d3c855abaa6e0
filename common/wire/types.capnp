@0xd0f1c4a8b5e36a11;
# Values that several dtf interfaces share. The interfaces, and the story of a job on the wire, are
# in ps.capnp.
#
# Rules for every message:
# - Sizes and counts are checked by the receiver against what was declared, before anything is
#   allocated or read.
# - A number in an enum or a field's position is never reused.
# - An error travels as a Cap'n Proto exception whose text carries dtf's error code
#   (common/net/error_bridge.h); an outcome that a caller branches on is a value here.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("dtf::schema");

enum JobKind {
  ps @0;
  worker @1;
}

struct Task {
  # One process of the cluster.
  job @0 :JobKind;
  index @1 :UInt32;
}

struct Hello {
  # Who calls, and the task it meant to reach. First call on every connection; the connection's
  # limits stay at 64 KiB a message until it was answered, and it is closed when it does not come
  # within 5 seconds.
  job @0 :Text;          # the job's name: both sides must run the same job
  caller @1 :Task;
  incarnation @2 :UInt64;  # of one start of the task: 16 bits of attempt, 40 of its time in 1/256 s, 8 more; never 0 (common/base/ids.h).
                         # Of two, the later attempt lives; where nobody counts attempts, the one
                         # that started later, or, once that is lost, the one that came later. The
                         # other is fenced
  callee @3 :Task;       # a host list in the wrong order is noticed here, by name
  software @4 :Text;     # version text, for logs
  address @5 :Text;      # of a worker in its own cluster file: it must be that in the callee's
  workers @6 :UInt64;    # XXH3-64 of all workers' addresses there, each with a line feed; of a worker it must be the callee's
  durability @8 :Text;   # as in the caller's cluster file, it must be that in the callee's; empty: checkpoint
  connection @7 :UInt32; # which one of this caller's, for the same purpose: lower ones of the same incarnation are closed
}

struct Slice {
  # One contiguous range of one variable in a shard's arena. Elements are float32.
  variable @0 :UInt32;   # index into Model.variables
  begin @1 :UInt64;      # first element of the variable, flattened row-major
  count @2 :UInt64;
  offset @3 :UInt64;     # in the arena; a multiple of 16
}

struct Variable {
  name @0 :Text;
  shape @1 :List(Int64);
  moves @2 :Bool;        # not trained: a moving average of what workers send in the place of its gradient
  momentum @3 :Float64;  # of that: from 0 to below 1
  sparse @4 :Bool;       # its gradient is rows of it: PsData.exchange. Its slices are whole rows, and the last of their shards
}

struct Shard {
  # What one ps task holds.
  slices @0 :List(Slice);
  elements @1 :UInt64;   # of the arena: a multiple of 16; what no slice covers is 0
}

struct Optimizer {
  # TensorFlow 1's formulae and defaults: cluster::OptimizerSpec. The settings are exactly those
  # that the kind and the schedule use, by the names in the YAML: see cluster/optimizer_settings.h.
  kind @0 :UInt8;        # 1 gradient descent, 2 Adagrad, 3 Adam, 4 momentum, 5 Adadelta, 6 AdamW, 7 RMSProp, 8 FTRL,
                         # 9 LARS, 10 LAMB
  schedule @1 :UInt8;    # of the learning rate: 1 constant, 2 exponential, 3 polynomial, 4 cosine
  settings @2 :List(OptimizerSetting);
}

struct OptimizerSetting {
  name @0 :Text;
  value @1 :Float64;     # a truth is 0 or 1; a count is a whole number
}

struct Replication {
  mode @0 :UInt8;        # 1 async, 2 sync, 3 bounded
  replicasToAggregate @1 :UInt32;
  totalNumReplicas @2 :UInt32;
  overlap @3 :Bool;      # async: workers compute the next batch while a gradient travels
  transferDtype @4 :UInt8;  # of parameters and gradients in PsData: 0 float32, 1 bfloat16
  staleness @5 :UInt32;  # bounded: how many steps a worker may be ahead of the slowest
}

struct Setting {
  name @0 :Text;         # as in TRAIN.yaml: "data.seed"
  value @1 :Text;
}

struct Model {
  # What every worker of a job must declare alike. A ps knows nothing of the model before.
  variables @0 :List(Variable);
  shards @1 :List(Shard);  # one per ps task
  optimizer @2 :Optimizer;
  replication @3 :Replication;
  steps @4 :UInt64;      # global steps until the job is done
  settings @5 :List(Setting);  # what all workers must have been told alike: data, seed, batch size, what the model computes
  epochExamples @6 :UInt64;  # of a job in which every example counts once an epoch: the size of its data; else 0
  epochBatchSize @7 :UInt64; # likewise: of a batch. With these a ps weighs the gradients of a short batch
}

struct StepState {
  # The answer to a pull or an exchange. See ps::StepState.
  outcome @0 :Outcome;
  globalStep @1 :UInt64;
  nextStep @2 :UInt64;
  nextBatch @3 :UInt32;
  done @4 :Bool;
  staleness @5 :UInt64;
  loss @6 :Float32;      # sync: mean over the replicas of the step that was decided; async: the caller's own
  epoch @7 :UInt64;      # the line of history that the parameters are on: ps/epoch.h
  progress @8 :UInt64;   # bounded: how far the caller is, in steps from 1 on, says ps/0; another ps: as the caller has told it,
                         # 0 where it hasn't

  enum Outcome {
    none @0;             # never sent: a zeroed message is not an answer
    applied @1;          # the gradient is in the parameters that come with this
    queued @2;           # kept; more batches of this worker are due for this step
    stale @3;            # too late, no effect
    wentBack @4;         # the ps have gone back to an earlier cut: no effect; compute again from what comes with this
  }
}
