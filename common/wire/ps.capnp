@0xb1a7e0c96f0d4c21;
# The protocol between workers and parameter servers.
#
# A worker opens two connections to each ps: *control* (small messages that must never wait behind
# bytes) and *bulk* (parameters and gradients). Each starts with 16 bytes that name the protocol and
# the kind (common/net/preamble.h), then Cap'n Proto RPC. The bootstrap capability is a Gate, which
# grants one thing: a session, after a hello. A caller can only call capabilities that it holds.
#
# A job's messages:
#
#   worker -> every ps   control: hello -> PsControl
#                        control: declare(model)            all workers declare the same model, or
#                                                           are rejected
#                        bulk:    hello -> PsData
#   chief  -> every ps   bulk:    initialise(values)        of an epoch; a ps that holds it keeps it
#   worker -> every ps   control: waitInitialised()         returns when the chief has initialised
#   worker -> ps/0       control: barrier("start")
#   worker -> every ps   bulk:    pull()                    the first parameters
#   worker -> every ps   bulk:    exchange(step, gradient)  push; the reply is the next step's
#                                                           parameters. Repeats
#   worker -> ps/0       control: barrier("trained.1")
#   chief  -> every ps   control: the last checkpoint       PsCheckpoint
#   worker -> ps/0       control: barrier("saved.1")        then pull(): a job that went back
#                                                           meanwhile trains on, to "trained.2":
#                                                           the barriers are numbered by epoch
#   chief  -> every ps   control: pause()                   if a stopped job will be resumed; then
#                                                           all: barrier("paused")
#   worker -> every ps   control: finish()                  a ps ends when every worker has finished
#
# In addition, every control connection carries a heartbeat each second; its reply is the heartbeat
# in the other direction. A peer that is silent for a lease (10 s) is lost.
#
# Ordering: calls of one connection arrive in order; nothing is assumed between connections.
# Retries: an exchange is identified by (worker, incarnation, step, batch); a repetition is applied
# once and gets the same reply.
#
# A broken connection is made again by the side that made it, within timeouts.rejoin_seconds, and
# calls without a reply are repeated: every call of PsControl and PsData takes effect once. The
# hello numbers the connections (Hello.connection). The ps closes earlier ones of the same process,
# so that no old message arrives after a newer one.
# Limits: 64 KiB a message before the hello; afterwards 16 MiB on control connections and, on bulk,
# the needs of the declared model. A chunk is at most 256 MiB (Cap'n Proto's own bound for a blob is
# 512 MiB - 1).

using Cxx = import "/capnp/c++.capnp";
using Types = import "types.capnp";
$Cxx.namespace("dtf::schema");

interface PsGate {
  # Bootstrap of a psd's control connections.
  hello @0 (hello :Types.Hello) -> (control :PsControl, incarnation :UInt64);
  # Opens a worker's session. Rejected (unavailable) if a newer incarnation of that worker has
  # joined. `incarnation`: of this ps. A worker that finds another incarnation has lost the values
  # that the ps held; an earlier one no longer belongs to the job.

  peer @1 (hello :Types.Hello, follower :SyncFollower) -> (leader :SyncLeader, incarnation :UInt64);
  # ps/0 only, called by the other ps in sync training with backup workers. ps/0 sends its decisions
  # to `follower`; calls of `leader` come from the ps of the hello. `incarnation`: of ps/0. Earlier
  # processes of either side are ignored.

  status @2 () -> (json :Text);
  # For people and tools: the workers that have joined, the step, current waits. Never rejected.
}

interface PsControl {
  declare @0 (model :Types.Model) -> (weighsEpochs :Bool);
  # Errors: bad_config with the difference to another worker's declaration. `weighsEpochs`: this ps
  # reads Model.epochExamples, and weighs the gradients of short batches. A ps of an earlier release
  # does not: a worker of a job with epochs doesn't train with it.

  waitInitialised @1 () -> ();

  heartbeat @2 (evaluates :Bool) -> (stopWanted :Bool, awaited :Text, awaitsReturn :Bool);
  # `evaluates`: this worker is evaluating between two steps. While a worker does, for
  # timeouts.finish_seconds at most, exchanges that wait here have no deadline.
  # `stopWanted`: this ps has received a stop signal. The worker asks ps/0 to stop the job, so that
  # it can be saved.
  # `awaited`: the workers that pushes have been waiting for on this ps; empty unless a wait is
  # long.
  # `awaitsReturn`: the ps waits for the return of a lost worker, or for one that evaluates;
  # meanwhile, exchanges have no deadline.

  barrier @3 (name :Text, passedBefore :Bool) -> ();
  # Returns when every worker still in the job has arrived.
  # `passedBefore`: the worker has passed this barrier in an earlier process of this ps. So all had
  # arrived, and the barrier is open, even if a worker was since lost for good, which this process
  # can't know.

  finish @4 () -> ();
  # This worker is done. Its session ends with the connection.

  supervise @5 () -> (checkpoint :PsCheckpoint, held :Held);
  # Only for the chief; others are rejected (permission). Call it after declare(). `held`: the
  # values of this ps, for the chief's decision (common/replication/job_recovery.h).

  requestStop @6 () -> ();
  # On ps/0: no steps after the running ones. Later exchanges return `done`, below the declared
  # steps.

  fail @7 (badConfig :Bool, reason :Text, leaves :Bool) -> ();
  # This worker ends with an error. For jobs by hand: under dtf-launch the launcher notifies the
  # others.
  # Without `leaves`: it ends its job, because a restarted worker would fail the same way, or
  # because a person ended it. The ps fails all calls that wait here, and the next heartbeats, and
  # ends, with the same code if it was bad_config, else with unavailable.
  # `leaves`: it has lost a peer, or waited in vain for one; the others may continue. It counts as
  # lost for that reason, and the ps ends when the last worker has left this way.

  awaitEnd @8 () -> ();
  # Called once on each connection; returns the error that this ps ends with. A connection that
  # breaks without this reply is made again.

  pause @9 () -> ();
  # Called by the chief after the last save and before finish(): the job ends below the declared
  # steps, and is resumed when its tasks are started again. The ps reports it with its exit code.
}

struct Held {
  epoch @0 :UInt64;        # of the values; 0: it holds none
  updates @1 :UInt64;      # updates applied to them
  restored @2 :Bool;       # the epoch began with a cut restored on all ps; otherwise with initial values
  originEpoch @3 :UInt64;  # of that cut
  originStep @4 :UInt64;
  fromSnapshot @5 :Bool;   # the cut was a snapshot, otherwise a checkpoint
  snapshots @6 :List(Cut); # that this ps can load
  replicaEpoch @7 :UInt64; # of the complete replica of another ps's shard that it keeps; 0: none

  struct Cut {
    # The name of a cut: common/replication/job_recovery.h.
    epoch @0 :UInt64;
    step @1 :UInt64;
  }
}

interface PsCheckpoint {
  # One ps's part in the job's checkpoints; common/train/supervisor.h has the whole sequence. A
  # position is {step} in sync mode; in async mode, the number of pushes applied, for each worker. A
  # cut is at the same position on every ps.
  #
  #   every ps: position()               -> the maximum is the position that all can reach
  #   every ps: cut(position)            -> captured in memory, on every ps at the same position
  #   every ps: save(folder, position)   -> its shard file is written and durable
  #   the chief writes the manifest, and renames the folder

  position @0 (hold :Bool) -> (position :List(UInt64));
  # `hold` (async): pushes beyond the returned position wait, for 5 s at most, until cut() or
  # releaseHold().

  cut @1 (position :List(UInt64), epoch :UInt64) -> (captured :Bool, version :UInt64);
  # Replies when the position is reached and the shard is captured; `captured` is false if the shard
  # was already beyond it.
  # `version`: of the captured parameters. The version on ps/0 is the checkpoint's global step.
  # `epoch`: of the position.
  # Errors: unavailable if this ps is on another epoch, or goes back to an earlier cut meanwhile.

  releaseHold @2 () -> ();
  # Ends a hold. A cut() that still waits for it fails (unavailable).

  save @3 (folder :Text, position :List(UInt64)) -> (saved :Saved);
  # Writes the capture of cut() at that position into that folder of the run directory's
  # checkpoints, and frees the capture. A name, never a path.
  # Errors: cannot_write; unavailable (another cut was captured, or none); permission, for a chief
  # that was replaced; training_failed with the variable that contains a NaN or an infinity.

  restore @4 (folder :Text) -> ();
  # Reads this ps's part of a checkpoint, written by any ps, and keeps it aside. Errors: bad_data
  # with file and tensor.

  commitRestore @5 (epoch :UInt64, cutEpoch :UInt64, cutStep :UInt64) -> ();
  # Installs the data of restore(), restoreSnapshot() or bring() as the shard's state, and begins
  # `epoch`; earlier state has no effect any more. Waiting workers continue: their replies report
  # that the ps went back. The chief calls it on every ps only after every ps has read its part: if
  # a chief is lost in between, the ps are on two epochs, and its successor continues from there.
  # `cutEpoch`, `cutStep`: the name of the cut.
  # Errors: unavailable if this ps is on a later epoch.

  snapshot @6 (position :List(UInt64), cut :Held.Cut, keeps :Bool, keep :Held.Cut)
      -> (bytes :UInt64, stallSeconds :Float64);
  # Keeps the capture of cut() at that position in this host's memory, under the name of the cut,
  # and frees the capture. From earlier snapshots only `keep` stays, if `keeps`: the newest one that
  # every ps has.
  # Errors: as save(); cannot_write also if the memory is too small, or if this ps was started
  # without snapshots.

  restoreSnapshot @7 (cut :Held.Cut) -> ();
  # Like restore(), from this ps's own snapshot of that cut. Errors: bad_data if it is damaged or
  # missing; the ps doesn't offer it again.

  forgetSnapshots @8 () -> ();
  # For a job that starts: snapshots in memory belong to one that has ended.

  refill @9 (epoch :UInt64) -> ();
  # An empty ps fetches its replica (PsReplica), and continues `epoch` with it.
  # Errors: unavailable if there is none of that epoch, or if this ps holds other values.

  awaitReplica @10 (epoch :UInt64) -> ();
  # Under `durability: replica`: replies once the next ps holds all values of this one.
  # Errors: unavailable if this ps is not on that epoch, or leaves it meanwhile, or if a newer call
  # replaces this one.

  see @11 (file :Text, seconds :Float64) -> (seen :Bool);
  # Returns whether a file of that name, just written by the chief, is in this ps's folder of
  # checkpoints, or appears there within `seconds`, 60 at most. A name, never a path.

  # If only the chief has the files of a checkpoint (`checkpoint: {gather: true}`), these calls
  # replace save():
  #
  #   every ps: stage(position)          -> its shard file is in memory, as bytes
  #   each ps in turn: fetch() ...       -> the chief writes them
  #   the chief commits; every ps: release(true)
  #
  # and restore(): every ps: expect(), then bring() ..., then commitRestore().

  stage @12 (position :List(UInt64)) -> (saved :Saved);
  # Keeps the capture of cut() at that position as the bytes of the file that save() would write,
  # until release(), another stage(), or the end of this connection. Errors: as save() without
  # cannot_write.

  fetch @13 (offset :UInt64, bytes :UInt32) -> (data :Data, checksum :UInt64);
  # Returns `bytes` of that file, 512 KiB at most. `checksum`: their XXH3-64. Errors: bad_config if
  # nothing is staged, or beyond the end of the file.

  release @14 (saved :Bool) -> ();
  # Frees the bytes. `saved`: the checkpoint is committed.

  expect @15 (globalStep :UInt64, workerBatches :List(UInt64), clocks :List(Clock)) -> ();
  # Makes room beside the shard's state for the state of a checkpoint; the arguments contain
  # everything but its values. Errors: bad_data for more workers or clocks than a job has tasks.

  bring @16 (arena :UInt32, offset :UInt64, values :Data, checksum :UInt64) -> ();
  # Stores values of it, as float32, 512 KiB at most: of the parameters (0) or of a slot (from 1
  # on), from that element of the arena on.
  # Errors: bad_data for values outside of this shard's variables, or sent before; unavailable if
  # the bytes were damaged in transit; bad_config without expect().

  staying @17 () -> (staying :PsStaying);
  # For a job with shards that stay on the ps (`checkpoint: {stay: true}`). Valid as long as this
  # session.

  struct Clock {
    applies @0 :UInt64;
    beta1Power @1 :Float64;
    beta2Power @2 :Float64;
  }

  struct Saved {
    file @0 :Text;         # in the folder
    bytes @1 :UInt64;
    checksum @2 :UInt64;   # XXH3-64 of the file
    parts @3 :List(Part);
    applies @4 :UInt64;    # the optimizer's clock
    beta1Power @5 :Float64;
    beta2Power @6 :Float64;
    stallSeconds @7 :Float64;  # the time for which the capture blocked this shard
  }

  struct Part {
    name @0 :Text;         # of the variable or slot
    begin @1 :UInt64;      # elements
    count @2 :UInt64;
    offset @3 :UInt64;     # bytes, in the file
    checksum @4 :UInt64;   # XXH3-64 of the part's bytes
  }
}

interface PsStaying {
  # The shards of checkpoints on this ps's own host, in <run_dir>/shards/NAME
  # (common/checkpoint/staying_shards.h). The chief has the manifest with their contents. Names are
  # never paths. Only restore() differs: the chief fetch()es the bytes for bring() (PsCheckpoint)
  # from any ps that has them.

  save @0 (name :Text, position :List(UInt64)) -> (saved :PsCheckpoint.Saved);
  # Like PsCheckpoint.save(), into that folder, which is created; all names down to the file are
  # durable.

  find @1 (name :Text, files :List(File)) -> (found :List(Found));
  # Checks which of these files are in that folder, each read completely, in order. Errors: bad_data
  # for more files than a job can have ps.

  fetch @2 (name :Text, file :Text, offset :UInt64, bytes :UInt32) -> (data :Data, checksum :UInt64);
  # Returns `bytes` of such a file, 512 KiB at most. `checksum`: their XXH3-64. Errors: bad_data if
  # the file is missing, or ends earlier.

  drop @3 (name :Text) -> ();
  # Removes that folder, because the attempt failed or the checkpoint is deleted. Does nothing if
  # there is none.
  # Errors: permission, for a chief that was replaced; cannot_write.

  struct File {
    name @0 :Text;
    bytes @1 :UInt64;
    checksum @2 :UInt64;   # XXH3-64
  }

  struct Found {
    standing @0 :Standing;
    reason @1 :Text;       # the reason if damaged
  }

  enum Standing {
    absent @0;
    whole @1;
    damaged @2;
  }
}

interface PsDataGate {
  # Bootstrap of a psd's bulk connections.
  hello @0 (hello :Types.Hello) -> (data :PsData, notYet :Text, codecs :List(Text), transport :Text);
  # `notYet`: the reason if there is no `data`: the caller has not joined this process of the ps, or
  # not declared the model to it, for example after its restart. Call it again, on another
  # connection, after the control session has done so. Empty if there is `data`. Any other rejection
  # is an error, and final. `codecs`: of this ps, as in the hello. Errors: bad_config if the caller
  # names codecs, and the model's transferDtype is not one of them.
  # `transport`: of this ps, as in the hello; bad_config if they differ.

  replica @1 (hello :Types.Hello) -> (replica :PsReplica, incarnation :UInt64);
  # Under `durability: replica`, for the ps whose shard is also kept here: the one before this ps,
  # or on ps/0 the last one. Replies once the model is declared here. `incarnation`: of this ps; a
  # new one keeps nothing yet. Rejected (unavailable) if a newer process of the caller has called.

  read @2 (job :Text) -> (reader :PsReader, model :Types.Model, shard :UInt32, notYet :Text);
  # For a caller that is no worker, and reads the parameters beside the training. `job`: its name;
  # empty: any. `shard`: the one that this ps holds. `notYet`: the reason if there is no `reader`:
  # no worker has declared the model yet.
  # Errors: bad_config for another job; unavailable if there are too many readers.
}

interface PsReader {
  # Parameters of one shard for a reader. No update waits for it. Its session ends with the
  # connection.

  capture @0 (newest :Bool, step :UInt64) -> (captured :Bool, step :UInt64, epoch :UInt64);
  # Keeps the parameters after exactly `step` updates, or the newest, until the next call, the end
  # of the connection, or a minute without a call. Replies when the shard has reached that step;
  # `captured` is false if it was already beyond it, or has not come there within two seconds. The
  # reply's `step` and `epoch`: of the shard's values, captured or not.
  # Errors: unavailable if this ps holds no values.

  values @1 (offset :UInt64, count :UInt64) -> (values :List(Data));
  # Returns elements of the captured arena, in chunks as in PsData. `offset` and `count` are
  # multiples of 16, `count` at most 4 Mi.
  # Errors: unavailable if nothing is captured; bad_data beyond the arena.
}

interface PsData {
  # Arenas are sent as chunks of 256 MiB, the last one shorter, by reference to the sender's memory.
  # Their elements are float32; with the model's transferDtype, the parameters in pull() and
  # exchange(), and the gradients, are bfloat16 (common/arena/codecs/bfloat16.h). Such a job shares
  # no memory. With a lossy transferDtype, gradients are int8 or top_k (common/arena/codecs/), and
  # parameters float32 or, of `base`, their changes in that codec.
  #
  # Processes of one host need not send large arenas: each side reads the other's memory
  # (common/net/memory_channel.h), and a message contains an arena's key instead of its chunks. A
  # worker requests it after its hello, on each new connection:
  #
  #   worker -> ps   openDoor()           the ps listens for its memory
  #   worker    ~>   Unix socket          the worker's gradient arenas; later, as they are made, the
  #                                       ps's parameters
  #   worker -> ps   shareMemory()        from here on replies may contain a key
  #
  # The worker overwrites a gradient arena only after the reply to its exchange; without a reply, it
  # repeats the exchange on the next connection, from the same arena, or ends. The ps overwrites an
  # arena of parameters only after a later call without it in `inUse`; arenas of a connection that
  # ended are never overwritten.

  initialise @0 (values :List(Data), epoch :UInt64) -> ();
  # `epoch`: of these values, the same for every ps of a job. A ps on this epoch, or a later one,
  # keeps its values; a ps on an earlier one takes these.

  pull @1 (wantsStep :Bool, wantedStep :UInt64, epoch :UInt64, inUse :UInt64, wantedCounts :List(UInt32),
      wantedIds :List(UInt32), progress :UInt64, base :UInt64)
      -> (state :Types.StepState, parameters :List(Data), key :UInt64, gone :List(UInt64), rows :List(UInt32),
      base :UInt64, changed :Bool, remote :RemoteArena);
  # Sync: with `wantsStep`, requests the parameters before that step, which may be the one before
  # the current. After a crash in the middle of a step, or for a slow backup worker, the ps may
  # reply with different steps, and a worker only computes with parameters of a single one
  # (common/exchange/step_agreement.h). A ps that no longer has them sends the current ones.
  # `progress`: bounded, to other ps than ps/0: the worker's clock, as assigned by ps/0, or all ones
  # if ps/0 has reported the end of the job; 0: not assigned yet. A ps delays its reply until no
  # other worker is too far behind.
  # `epoch`: replies when this ps is on that epoch, or a later one. A restarted ps replies when it
  # has its values back.

  exchange @2 (step :UInt64, batch :UInt32, loss :Float32, gradient :List(Data), epoch :UInt64, rows :List(UInt32),
      traceparent :Text, gradientKey :UInt64, inUse :UInt64, wantedCounts :List(UInt32), wantedIds :List(UInt32),
      progress :UInt64, times :Types.PhaseTimes, base :UInt64)
      -> (state :Types.StepState, parameters :List(Data), key :UInt64, gone :List(UInt64), rows :List(UInt32),
      base :UInt64, changed :Bool, remote :RemoteArena);
  # `epoch`: of the parameters that the gradient was computed from. If this ps is on another, the
  # gradient has no effect, and the reply is `wentBack`.
  # sync: replies when the step is decided (for a batch that is not the worker's last of the step,
  # at once and without parameters). async: applied on arrival. bounded: the same, but replies like
  # pull.
  # `progress`: bounded: the worker's clock, as last assigned by ps/0.
  # `rows`: for each slice of a sparse variable in the shard, the number of its rows in the
  # gradient. `gradient` is then no arena. It contains the dense elements, then for each of these
  # slices the ids of the rows (UInt32, counted from the slice's first row, ascending, distinct) and
  # their values, row after row; if the number of elements is odd, it ends with an ignored one
  # (common/arena/gradient_layout.h). Errors: bad_data for other counts, sizes or ids.
  # `traceparent`: of a traced step, in W3C's format for HTTP: the parent of this ps's spans for the
  # call. A malformed one is ignored.
  # `gradientKey`: the worker's arena with the gradient, if not 0; `gradient` and `rows` are then
  # empty. Errors: bad_data if they aren't, or if the arena was not given. `key`: likewise the ps's
  # arena with the parameters. `inUse`, in pull too: the key of an earlier reply that the worker
  # still reads, besides the reply to come; 0: none.
  # `wantedCounts`, `wantedIds`, in pull too: the rows that the caller's next batch looks up: their
  # number for each slice of a sparse variable in the shard, and their ids as in a gradient, slice
  # after slice. The reply then has these counts as `rows`, and as `parameters` the dense elements,
  # then these rows in the layout of a gradient. If empty, as in replies of older versions: all
  # parameters. A reply with a key has all. Errors: bad_data for other counts or ids.
  # `times`: sync, to ps/0: of the worker's step before; none: it is the first one, or not measured.
  # `base`, in pull too, of a job with a lossy transferDtype: the number that came with the caller's
  # parameters; 0: it has none. The reply has the number of the parameters that it makes. With
  # `changed`, the dense elements are a change of the caller's, in that codec; otherwise they are
  # float32.
  # `gone`, in pull too: keys of arenas that this ps has freed, for the worker to unmap.

  averages @3 (current :Bool) -> (state :Types.StepState, parameters :List(Data));
  # Returns the moving averages of the parameters, if the optimizer keeps them (else bad_config);
  # with `current` the parameters themselves. Complete, as float32 regardless of the model's
  # transferDtype, and between two updates; of `state` only globalStep is valid: the number of
  # updates in them. For readers beside training: it is no pull.

  openDoor @4 () -> (address :Text, secret0 :UInt64, secret1 :UInt64);
  # For a worker that appears to be on this host. If it fails, arenas are sent: bad_config if this
  # ps's cluster file disables shared memory; unavailable if the kernel rejects it.

  shareMemory @5 (gradientKeys :List(UInt64), requestKey :UInt64) -> (replyKey :UInt64);
  # The caller has connected to the door, and given its gradient arenas: two at most, none if
  # gradients are sent (of sparse variables, and with several batches a step, which this ps keeps
  # beyond its reply).
  # `requestKey`: of a page that the caller has given after the arenas, if not 0. From here on the
  # caller may write an exchange there instead of sending it, and reads the reply in the page that
  # `replyKey` names; 0: this ps doesn't look there (common/wire/exchange_board.h).
  # Errors: unavailable without a connection at the door, or if the kernel rejects it; bad_data for
  # more arenas, for arenas where gradients must be sent, and for a missing arena or one of the
  # wrong size.

  openRemote @6 () -> (address :Data, gradientKey :UInt64, gradient :RemoteArena, ucx :Text);
  # With `transport: rdma`, once on each connection after its hello: opens a channel by which the
  # caller's network card reads and writes arenas of this ps (common/net/channels/). `address`: of
  # UCX, which the caller connects to. `gradient`: the arena into which the caller puts its gradient
  # before it names `gradientKey` in an exchange. Replies name parameters by `key`, as with shared
  # memory; the first one with a key has its arena as `remote`. The caller reads the parameters
  # before its next call, and `inUse` is 0. `ucx`: the version of UCX, "1.13.1"; the caller refuses
  # any other than its own before it reads `address`. Nothing is read or written after the
  # connection's end.
  # Errors: bad_config without that transport; bad_data for a second call on one connection;
  # unavailable if memory can't be registered.
}

struct RemoteArena {
  # Memory of a ps that the card of one worker may read, or write.
  address @0 :UInt64;    # in the memory of the ps
  bytes @1 :UInt64;
  cardKey @2 :Data;      # UCX's rkey, at most 4096 bytes
}

interface PsReplica {
  # `durability: replica`: the copy of another ps's shard (common/replication/replicator.h). The
  # caller has one call in progress at a time. Its update counts, and becomes visible to workers,
  # only after the reply.

  arena @0 (index :UInt32, values :List(Data)) -> ();
  # For the seed to come: 0 is the parameters, then the optimizer's slots.

  seed @1 (state :ReplicaState) -> ();
  # Replaces the copy by the arenas sent with arena().

  update @2 (epoch :UInt64, version :UInt64, loss :Float32, pushes :List(Push), gradient :List(Data), rows :List(UInt32))
      -> ();
  # `rows`: as in PsData.exchange. Replies when it is received completely; it may be applied later.
  # A repetition takes effect once.

  fetch @3 () -> (state :ReplicaState, arenas :UInt32);
  # For a process of the caller that holds nothing. Errors: unavailable if nothing is kept.

  fetched @4 (index :UInt32) -> (values :List(Data));
  # After fetch(). There is one more than the slots: the parameters before the last update.

  struct Push {
    rank @0 :UInt32;
    incarnation @1 :UInt64;  # async: of the worker
    step @2 :UInt64;
    progress @3 :UInt64;     # bounded: of the worker, with this push
  }
}

struct ReplicaState {
  epoch @0 :UInt64;
  origin @1 :UInt8;        # as replication::EpochOrigin
  originEpoch @2 :UInt64;
  originStep @3 :UInt64;
  version @4 :UInt64;      # of the parameters
  applies @5 :UInt64;      # the optimizer's clock
  beta1Power @6 :Float64;
  beta2Power @7 :Float64;
  loss @8 :Float32;        # of the last update
  workers @9 :List(Worker);

  struct Worker {
    incarnation @0 :UInt64;  # of its last push
    steps @1 :UInt64;        # one more than its last pushed step
    sets @2 :UInt64;         # bit k: it was in the set of the k-th update before the last
    loss @3 :Float32;
    progress @4 :UInt64;     # bounded: with its last push
  }
}

interface SyncLeader {
  # Sync with backup workers: ps/0 alone decides which workers make up a step, among workers whose
  # gradients are on every ps. So all ps apply the same complete set.
  received @0 (step :UInt64, rank :UInt32, epoch :UInt64) -> ();
  # The gradient of `rank` for `step` is on the ps that holds this capability.
}

interface SyncFollower {
  decided @0 (step :UInt64, ranks :List(UInt32), epoch :UInt64) -> ();
  # Calls of an epoch that the callee has left have no effect, in both interfaces.
}
