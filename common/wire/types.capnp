@0xd0f1c4a8b5e36a11;
# Structs shared by several dtf interfaces. The interfaces, and a job's sequence of messages, are in
# ps.capnp.
#
# Rules for every message:
# - The receiver checks sizes and counts against the declared ones before it allocates or reads
#   anything.
# - A number in an enum or a field's position is never reused.
# - An error is sent as a Cap'n Proto exception; its text contains dtf's error code
#   (common/net/error_bridge.h). An outcome that a caller branches on is a value here.

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
  # The identity of the caller, and the task it intends to reach. The first call on every
  # connection. Until the reply the connection's limit is 64 KiB a message; it is closed if the
  # hello does not arrive within 5 seconds.
  job @0 :Text;          # the job's name: both sides must run the same job
  caller @1 :Task;
  incarnation @2 :UInt64;  # one start of the task: 16 bits of attempt, 40 of its time in 1/256 s, 8 more; never 0 (common/base/ids.h).
                         # If there are two, the later attempt wins; if attempts aren't counted, the
                         # later start, or, once that is lost, the later arrival. The other one is
                         # fenced
  callee @3 :Task;       # detects a host list in the wrong order, by name
  software @4 :Text;     # version text, for logs
  address @5 :Text;      # of a worker in its own cluster file; must equal the callee's
  workers @6 :UInt64;    # XXH3-64 of all workers' addresses there, each with a line feed; a worker's must equal the callee's
  durability @8 :Text;   # as in the caller's cluster file; must equal the callee's; empty: checkpoint
  connection @7 :UInt32; # number of the caller's connection for this purpose: lower numbers of the same incarnation are closed
  codecs @9 :List(Text); # of the caller: the forms in which it reads and sends values (common/arena/codec.h); empty: of a version that names none
  transport @10 :Text;   # of the caller's cluster file; must equal the callee's: "rdma"; empty: TCP
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
  moves @2 :Bool;        # not trained: a moving average of the values that workers send instead of its gradient
  momentum @3 :Float64;  # of that average: from 0 to below 1
  sparse @4 :Bool;       # its gradient is rows of it: PsData.exchange. Its slices are whole rows, and come last in their shards
}

struct Shard {
  # The shard of one ps task.
  slices @0 :List(Slice);
  elements @1 :UInt64;   # of the arena: a multiple of 16; elements outside of slices are 0
}

struct Optimizer {
  # TensorFlow 1's formulae and defaults: cluster::OptimizerSpec. Contains exactly the settings used
  # by the kind and the schedule, with their names in the YAML: see cluster/optimizer_settings.h.
  kind @0 :UInt8;        # 1 gradient descent, 2 Adagrad, 3 Adam, 4 momentum, 5 Adadelta, 6 AdamW, 7 RMSProp, 8 FTRL,
                         # 9 LARS, 10 LAMB
  schedule @1 :UInt8;    # of the learning rate: 1 constant, 2 exponential, 3 polynomial, 4 cosine
  settings @2 :List(OptimizerSetting);
}

struct OptimizerSetting {
  name @0 :Text;
  value @1 :Float64;     # a bool is 0 or 1; a count is a whole number
}

struct Replication {
  mode @0 :UInt8;        # 1 async, 2 sync, 3 bounded
  replicasToAggregate @1 :UInt32;
  totalNumReplicas @2 :UInt32;
  overlap @3 :Bool;      # async: workers compute the next batch while a gradient travels
  transferDtype @4 :UInt8;  # of values in PsData: 0 float32, 1 bfloat16, 2 int8, 3 top_k
  staleness @5 :UInt32;  # bounded: the largest number of steps between a worker and the slowest one
  transferTopK @6 :Float64;  # top_k: the share of the elements; otherwise 0
  hostLeaders @7 :List(UInt32);  # of each worker the one that exchanges its gradient; empty: itself
}

struct Setting {
  name @0 :Text;         # as in TRAIN.yaml: "data.seed"
  value @1 :Text;
}

struct Model {
  # The declaration that all workers of a job must agree on. A ps knows nothing of the model before
  # it.
  variables @0 :List(Variable);
  shards @1 :List(Shard);  # one per ps task
  optimizer @2 :Optimizer;
  replication @3 :Replication;
  steps @4 :UInt64;      # global steps until the job is done
  settings @5 :List(Setting);  # settings that all workers must agree on: data, seed, batch size, the model's computation
  epochExamples @6 :UInt64;  # if every example counts once an epoch: the size of the data; else 0
  epochBatchSize @7 :UInt64; # likewise: the size of a batch. With these a ps weighs the gradients of a short batch
}

struct StepState {
  # The reply to a pull or an exchange. See replication::StepState.
  outcome @0 :Outcome;
  globalStep @1 :UInt64;
  nextStep @2 :UInt64;
  nextBatch @3 :UInt32;
  done @4 :Bool;
  staleness @5 :UInt64;
  loss @6 :Float32;      # sync: mean over the replicas of the decided step; async: the caller's own
  epoch @7 :UInt64;      # the epoch of the parameters: replication/epoch.h
  progress @8 :UInt64;   # bounded: the caller's clock, in steps from 1 on, assigned by ps/0; another ps: the caller's copy,
                         # 0 if it sent none
  waited @9 :UInt32;     # microseconds for which the call waited, once its gradient had come: for other workers
                         # and the update; 0: this ps is of a version that doesn't measure it
  slowPhase @10 :UInt8;  # sync, ps/0: of the named worker, as replication::Phase
  slowWorker @11 :UInt32; # sync, ps/0: 1 + rank of the worker that the others wait for; 0: none stands out
  slowMicros @12 :UInt32; # its excess a step

  enum Outcome {
    none @0;             # never sent: a zeroed message is not a reply
    applied @1;          # the gradient is included in the parameters of this reply
    queued @2;           # kept; more batches of this worker are due for this step
    stale @3;            # too late, no effect
    wentBack @4;         # the ps have gone back to an earlier cut: no effect; compute again with the parameters of this reply
  }
}

struct PhaseTimes {
  # A worker's time from the answer of one step to the answer of the next, in microseconds. See
  # replication::PhaseTimes.
  data @0 :UInt32;
  compute @1 :UInt32;
  send @2 :UInt32;
  wait @3 :UInt32;
  evaluate @4 :UInt32;
}
