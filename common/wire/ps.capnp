@0xb1a7e0c96f0d4c21;
# How workers and parameter servers talk.
#
# A worker opens two connections to each ps: *control* (small messages that must never wait behind
# bytes) and *bulk* (parameters and gradients). Each starts with 16 bytes that name the protocol and
# the kind (common/net/preamble.h), then Cap'n Proto RPC. The bootstrap capability is a Gate, which
# gives away one thing: a session, after a hello. What a caller does not hold it cannot call.
#
# A job on the wire:
#
#   worker -> every ps   control: hello -> PsControl
#                        control: declare(model)            all workers bring the same model, or are
#                                                           refused
#                        bulk:    hello -> PsData
#   chief  -> every ps   bulk:    initialise(values)        of an epoch; a ps that holds it keeps it
#   worker -> every ps   control: waitInitialised()         returns when the chief has initialised
#   worker -> ps/0       control: barrier("start")
#   worker -> every ps   bulk:    pull()                    the first parameters
#   worker -> every ps   bulk:    exchange(step, gradient)  push; the answer is the next step's
#                                                           parameters. Repeats
#   worker -> ps/0       control: barrier("trained.1")
#   chief  -> every ps   control: the last checkpoint       PsCheckpoint
#   worker -> ps/0       control: barrier("saved.1")        then pull(): a job that went back
#                                                           meanwhile trains on, to "trained.2":
#                                                           these barriers have the numbers of
#                                                           epochs
#   chief  -> every ps   control: pause()                   where a job that was stopped is to go
#                                                           on; then all: barrier("paused")
#   worker -> every ps   control: finish()                  a ps ends when every worker has finished
#
# Beside that, a heartbeat each second on every control connection, both ways (the answer is the
# other way's). A peer that is silent for a lease (10 s) is lost.
#
# Ordering: calls of one connection arrive in order; nothing is assumed between connections.
# Retries: an exchange is identified by (worker, incarnation, step, batch); repeated, it is applied
# once and answered alike.
#
# A connection that breaks is made again by whoever made it, within timeouts.rejoin_seconds, and
# what was not answered is sent again: every call of PsControl and PsData has its effect once. The
# hello counts the connections (Hello.connection): the ps closes the earlier ones of the same
# process, so that nothing old arrives behind what is new.
# Limits: 64 KiB a message before the hello; afterwards 16 MiB on control connections and, on bulk,
# what the declared model needs. A chunk is at most 256 MiB (Cap'n Proto's own bound for a blob is
# 512 MiB - 1).

using Cxx = import "/capnp/c++.capnp";
using Types = import "types.capnp";
$Cxx.namespace("dtf::schema");

interface PsGate {
  # Bootstrap of a psd's control connections.
  hello @0 (hello :Types.Hello) -> (control :PsControl, incarnation :UInt64);
  # A worker's session. Refused (unavailable) when a newer incarnation of that worker has joined.
  # `incarnation`: of this ps. A worker that comes back to another one has lost what the ps held; an
  # earlier one is no longer the job's.

  peer @1 (hello :Types.Hello, follower :SyncFollower) -> (leader :SyncLeader, incarnation :UInt64);
  # ps/0 only, called by the other ps in sync training with backup workers. The decisions go to
  # `follower`; what is said to `leader` is said by the ps of the hello. `incarnation`: of ps/0. An
  # earlier process of either is not listened to.

  status @2 () -> (json :Text);
  # For people and tools: who has joined, the step, what is awaited. Never refused.
}

interface PsControl {
  declare @0 (model :Types.Model) -> (weighsEpochs :Bool);
  # Errors: bad_config with what differs from what another worker declared. `weighsEpochs`: this ps
  # reads Model.epochExamples, and weighs the gradients of short batches. One of a release before
  # does not: a worker whose job has epochs trains with none such.

  waitInitialised @1 () -> ();

  heartbeat @2 (evaluates :Bool) -> (stopWanted :Bool, awaited :Text, awaitsReturn :Bool);
  # `evaluates`: this worker is between two steps and evaluates. While one does, for
  # timeouts.finish_seconds at most, exchanges that wait here have no deadline.
  # `stopWanted`: this ps was told to end. The worker asks ps/0 to stop the job, so that it can be
  # saved.
  # `awaited`: whom pushes of this or other workers have been waiting for on this ps; empty while
  # nobody waits long.
  # `awaitsReturn`: that is a lost worker, whose return the ps waits for, or one that evaluates;
  # while it does, exchanges have no deadline.

  barrier @3 (name :Text, passedBefore :Bool) -> ();
  # Returns when every worker that is still in the job has arrived.
  # `passedBefore`: an earlier process of this ps has let the worker through. So all had arrived,
  # and the barrier is open for whoever comes: also where one of them was lost for good, which this
  # process can't know.

  finish @4 () -> ();
  # This worker is done. Its session ends with the connection.

  supervise @5 () -> (checkpoint :PsCheckpoint, held :Held);
  # For the chief alone; refused (permission) to others. After declare(). `held`: what this ps
  # holds, for the chief to decide with (common/ps/job_recovery.h).

  requestStop @6 () -> ();
  # On ps/0: no step beyond those under way. Exchanges are then answered with `done`, below the
  # declared steps.

  fail @7 (badConfig :Bool, reason :Text, leaves :Bool) -> ();
  # This worker ends with an error. For jobs by hand: under dtf-launch the launcher tells the
  # others.
  # Not `leaves`: it ends its job, for a reason that starting it again would not mend, or because a
  # person ended it. The ps tells all who wait here or send a heartbeat, and ends, with the same
  # code when it was bad_config, else with unavailable.
  # `leaves`: it has lost a peer, or waited in vain for one; the others may go on. It is lost for
  # that reason, and the ps ends when the last worker has left so.

  awaitEnd @8 () -> ();
  # Asked once on each connection, and answered with the error that this ps ends with. A connection
  # that breaks without this answer is made again.

  pause @9 () -> ();
  # Of the chief, when all is saved and before finish(): the job ends below the declared steps, to
  # go on when its tasks are started again. The ps says so with its exit code.
}

struct Held {
  epoch @0 :UInt64;        # of the values; 0: it holds none
  updates @1 :UInt64;      # that they have had
  restored @2 :Bool;       # the epoch began with a cut that all went back to, else with initial values
  originEpoch @3 :UInt64;  # of that cut
  originStep @4 :UInt64;
  fromSnapshot @5 :Bool;   # it was a snapshot, else a checkpoint
  snapshots @6 :List(Cut); # that this ps can load
  replicaEpoch @7 :UInt64; # of the whole replica of another ps's shard that it keeps; 0: none

  struct Cut {
    # The name of a cut: common/ps/job_recovery.h.
    epoch @0 :UInt64;
    step @1 :UInt64;
  }
}

interface PsCheckpoint {
  # One ps's part in the job's checkpoints; the story is in common/train/supervisor.h. A position is
  # {step} in sync mode; in async mode, for each worker, how many of its pushes are in. A cut is at
  # one position on every ps.
  #
  #   every ps: position()               -> the position that all can reach is the maximum
  #   every ps: cut(position)            -> captured in memory, on every ps at the same position
  #   every ps: save(folder, position)   -> its shard file is written and durable
  #   the chief writes the manifest, and renames the folder

  position @0 (hold :Bool) -> (position :List(UInt64));
  # `hold` (async): pushes beyond the answer wait, for 5 s at most, until cut() or releaseHold().

  cut @1 (position :List(UInt64), epoch :UInt64) -> (captured :Bool, version :UInt64);
  # Answered when the position is reached and the shard is captured; `captured` is false when it had
  # passed it already.
  # `version`: of the parameters captured. That of ps/0 is the checkpoint's global step. `epoch`:
  # that the position is on. Errors: unavailable when this ps is on another, or goes back to an
  # earlier cut meanwhile.

  releaseHold @2 () -> ();
  # Ends a hold. A cut() that still waits for it is answered with an error (unavailable).

  save @3 (folder :Text, position :List(UInt64)) -> (saved :Saved);
  # Writes what cut() captured at that position into that folder of the run directory's checkpoints,
  # and lets the capture go. A name, never a path. Errors: cannot_write; unavailable (another cut
  # was captured, or none); permission, to a chief that was replaced; training_failed naming the
  # variable that holds a NaN or an infinity.

  restore @4 (folder :Text) -> ();
  # Reads this ps's part of a checkpoint, whoever wrote it, and keeps it aside. Errors: bad_data
  # naming file and tensor.

  commitRestore @5 (epoch :UInt64, cutEpoch :UInt64, cutStep :UInt64) -> ();
  # What restore() or restoreSnapshot() read, or bring() brought whole, becomes the shard's state,
  # and `epoch` begins with it; of what was there before, nothing has an effect any more. The
  # workers that wait go on: they are told that the ps went back. Said to every ps only when every
  # ps has read its part, so a chief that is lost in between leaves ps on two epochs, and its
  # successor goes on from there. `cutEpoch`, `cutStep`: the name of the cut. Errors: unavailable
  # when this ps is on a later epoch.

  snapshot @6 (position :List(UInt64), cut :Held.Cut, keeps :Bool, keep :Held.Cut)
      -> (bytes :UInt64, stallSeconds :Float64);
  # Keeps what cut() captured at that position in this host's memory, under the name of the cut, and
  # lets the capture go. Of the snapshots before it only `keep` stays, where `keeps`: the newest
  # that every ps has. Errors: those of save(); cannot_write also where the memory is too small, or
  # this ps was started without snapshots.

  restoreSnapshot @7 (cut :Held.Cut) -> ();
  # As restore(), from this ps's own snapshot of that cut. Errors: bad_data when it is damaged, or
  # gone; the ps doesn't offer it again.

  forgetSnapshots @8 () -> ();
  # Of a job that starts: what lies in memory is of one that has ended.

  refill @9 (epoch :UInt64) -> ();
  # An empty ps fetches its replica (PsReplica), and `epoch` goes on with it. Errors: unavailable
  # when there is none of that epoch, or this ps holds other values.

  awaitReplica @10 (epoch :UInt64) -> ();
  # Under `durability: replica`: answered once the next ps holds all that this one does. Errors:
  # unavailable when this ps is not on that epoch, or leaves it meanwhile, or a newer question takes
  # the place of this one.

  see @11 (file :Text, seconds :Float64) -> (seen :Bool);
  # Whether a file of that name, which the chief has just written, is in this ps's folder of
  # checkpoints, or comes to be there within so many seconds, 60 at most. A name, never a path.

  # Where the files of a checkpoint are the chief's alone (`checkpoint: {gather: true}`), in place
  # of save():
  #
  #   every ps: stage(position)          -> its shard file is in memory, as bytes
  #   each ps in turn: fetch() ...       -> the chief writes them
  #   the chief commits; every ps: release(true)
  #
  # and of restore(): every ps: expect(), then bring() ..., then commitRestore().

  stage @12 (position :List(UInt64)) -> (saved :Saved);
  # Keeps what cut() captured at that position as the bytes of the file that save() would write,
  # until release(), another stage(), or the end of this connection. Errors: those of save() but
  # cannot_write.

  fetch @13 (offset :UInt64, bytes :UInt32) -> (data :Data, checksum :UInt64);
  # `bytes` of that file, 512 KiB at most. `checksum`: XXH3-64 of them. Errors: bad_config where
  # nothing is staged, or for what is beyond the file.

  release @14 (saved :Bool) -> ();
  # Lets them go. `saved`: the checkpoint is committed.

  expect @15 (globalStep :UInt64, workerBatches :List(UInt64), clocks :List(Clock)) -> ();
  # Makes room beside the shard's state for that of a checkpoint, of which everything but the values
  # is here. Errors: bad_data for more workers or clocks than a job has tasks.

  bring @16 (arena :UInt32, offset :UInt64, values :Data, checksum :UInt64) -> ();
  # Values of it, as float32, 512 KiB at most: of the parameters (0) or of a slot (from 1 on), from
  # that element of the arena on. Errors: bad_data when they are no part of this shard's variables,
  # or came before; unavailable when the bytes were damaged on the way; bad_config where none are
  # expected.

  staying @17 () -> (staying :PsStaying);
  # For a job whose shards stay with the ps (`checkpoint: {stay: true}`). As good as this session.

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
    stallSeconds @7 :Float64;  # how long the capture held up this shard
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
  # The shards of checkpoints that this ps has on its own host, in <run_dir>/shards/NAME
  # (common/checkpoint/ staying_shards.h). The manifest that says what is in them is the chief's.
  # Names are never paths. Of restore() only this differs: the chief fetch()es what it will bring()
  # (PsCheckpoint), from whichever ps has it.

  save @0 (name :Text, position :List(UInt64)) -> (saved :PsCheckpoint.Saved);
  # As PsCheckpoint.save, into that folder, which is made; all names down to the file are durable.

  find @1 (name :Text, files :List(File)) -> (found :List(Found));
  # What of these files is in that folder, each read whole, in their order. Errors: bad_data for
  # more files than a job can have ps.

  fetch @2 (name :Text, file :Text, offset :UInt64, bytes :UInt32) -> (data :Data, checksum :UInt64);
  # `bytes` of such a file, 512 KiB at most. `checksum`: XXH3-64 of them. Errors: bad_data where it
  # is not there, or ends earlier.

  drop @3 (name :Text) -> ();
  # Removes that folder, for the attempt came to nothing or the checkpoint goes. None is there:
  # nothing. Errors: permission, to a chief that was replaced; cannot_write.

  struct File {
    name @0 :Text;
    bytes @1 :UInt64;
    checksum @2 :UInt64;   # XXH3-64
  }

  struct Found {
    standing @0 :Standing;
    reason @1 :Text;       # why it is damaged
  }

  enum Standing {
    absent @0;
    whole @1;
    damaged @2;
  }
}

interface PsDataGate {
  # Bootstrap of a psd's bulk connections.
  hello @0 (hello :Types.Hello) -> (data :PsData, notYet :Text);
  # `notYet`: why there is no `data`: the caller has not joined this process of the ps, or not
  # declared the model to it, as when it was started again. To be asked again, on another
  # connection, after the control session has done so. Empty: there is. Any other refusal is an
  # error, and final.

  replica @1 (hello :Types.Hello) -> (replica :PsReplica, incarnation :UInt64);
  # Under `durability: replica`, for the ps whose shard is kept here, too: the one before this ps,
  # and the last one on ps/0. Answered once the model is declared here. `incarnation`: of this ps;
  # another than before keeps nothing yet. Refused (unavailable) when a newer process of the caller
  # was here.
}

interface PsData {
  # Arenas travel as chunks of 256 MiB, the last one shorter, by reference to the sender's memory.
  # Their elements are float32, or as the model's transferDtype says it of the parameters that
  # pull() and exchange() bring and of the gradients: bfloat16 (common/ps/narrow_gradient.h). Such a
  # job shares no memory.
  #
  # Between processes of one host large arenas needn't travel: each side reads them in the other's
  # memory (common/net/memory_channel.h), and a message has an arena's key in the place of its
  # chunks. A worker asks for it behind its hello, on each connection anew:
  #
  #   worker -> ps   openDoor()           the ps listens for its memory
  #   worker    ~>   Unix socket          the worker's gradient arenas; later, as they are made, the
  #                                       ps's parameters
  #   worker -> ps   shareMemory()        from here on answers may name a key
  #
  # The worker writes a gradient arena again when its exchange was answered with a state; where it
  # wasn't, it repeats it on the next connection, from the same arena, or ends. The ps writes an
  # arena of parameters again when a later call says that it isn't `inUse` any more; those of a
  # connection that ends it never writes again.

  initialise @0 (values :List(Data), epoch :UInt64) -> ();
  # `epoch`: of these values; every ps of a job is told the same. A ps that is on it, or a later
  # one, keeps what it has; one that is on an earlier one goes back to these.

  pull @1 (wantsStep :Bool, wantedStep :UInt64, epoch :UInt64, inUse :UInt64, wantedCounts :List(UInt32),
      wantedIds :List(UInt32), progress :UInt64)
      -> (state :Types.StepState, parameters :List(Data), key :UInt64, gone :List(UInt64), rows :List(UInt32));
  # Sync: with `wantsStep`, the parameters before that step, which may be the one before the
  # current: after a crash in the middle of a step, or for a slow backup worker, the ps may answer
  # with different steps, and a worker computes only with the parameters of one
  # (common/ps/step_agreement.h). A ps that no longer has them sends the current ones.
  # `progress`: bounded, to other ps than ps/0: of the worker, as ps/0 has said it, or all ones
  # where it has said that the job is done; 0: ps/0 hasn't said it yet. A ps keeps its answer until
  # no other worker is too far behind.
  # `epoch`: answered when this ps is on that epoch, or a later one. A ps that was started again
  # answers when it has got its values back.

  exchange @2 (step :UInt64, batch :UInt32, loss :Float32, gradient :List(Data), epoch :UInt64, rows :List(UInt32),
      traceparent :Text, gradientKey :UInt64, inUse :UInt64, wantedCounts :List(UInt32), wantedIds :List(UInt32),
      progress :UInt64)
      -> (state :Types.StepState, parameters :List(Data), key :UInt64, gone :List(UInt64), rows :List(UInt32));
  # `epoch`: of the parameters that the gradient was computed from. When this ps is on another, the
  # gradient has no effect, and the answer is `wentBack`.
  # sync: answered when the step is decided (or, for a batch that is not the worker's last of the
  # step, at once and without parameters). async: applied on arrival. bounded: so, too, but answered
  # as a pull is.
  # `progress`: bounded: of the worker, as ps/0 has said it last.
  # `rows`: for each slice of a sparse variable in the shard, how many of its rows the gradient has.
  # `gradient` is then not an arena, but its dense elements, then for each of these slices the ids
  # of the rows (UInt32, counted from the slice's first row, ascending, each once) and their values,
  # row after row; at the end, where the number of elements is odd, one that is ignored
  # (common/ps/gradient_layout.h). Errors: bad_data for other counts, sizes or ids.
  # `traceparent`: of a step that is traced, as W3C has it in HTTP: what this ps does for the call
  # has that span as its parent. One that can't be read is none.
  # `gradientKey`: of the worker's arena that has the gradient, where it isn't 0; `gradient` and
  # `rows` are empty then. Errors: bad_data when they aren't, or the arena wasn't given. `key`: of
  # the ps's arena that has the parameters, likewise. `inUse`, in pull too: the key of an earlier
  # answer whose parameters the worker still reads, besides those of the answer to come; 0: none.
  # `wantedCounts`, `wantedIds`, in pull too: the rows that the caller's next batch looks up, of
  # each slice of a sparse variable in the shard so many, by their ids as in a gradient, slice after
  # slice. The answer then has `rows`, these counts, and as `parameters` the dense elements, then
  # these rows as a gradient has them. Empty, and so in answers of a version before these fields:
  # all parameters. An answer that names a key has all. Errors: bad_data for other counts or ids.
  # `gone`, in pull too: keys of arenas that this ps doesn't have any more, for the worker to unmap.

  averages @3 (current :Bool) -> (state :Types.StepState, parameters :List(Data));
  # The moving averages of the parameters, where the optimizer keeps them, else refused
  # (bad_config); with `current` the parameters themselves. Whole, as float32, whatever the model's
  # transferDtype, and between two updates; of `state` only globalStep counts: the updates that are
  # in them. For those who look beside training: it is no pull.

  openDoor @4 () -> (address :Text, secret0 :UInt64, secret1 :UInt64);
  # For a worker that seems to be on this host. Errors, and then arenas travel: bad_config where
  # this ps's cluster file doesn't want to share memory; unavailable where the kernel refuses.

  shareMemory @5 (gradientKeys :List(UInt64)) -> ();
  # The caller has connected to the door, and given its gradient arenas: two at most, none where
  # gradients travel (those of sparse variables, and of several batches a step, which this ps keeps
  # beyond its answer). Errors: unavailable when nobody has connected, or the kernel refuses;
  # bad_data for more arenas, for some where gradients have to travel, and when one is missing, too
  # small or too large.
}

interface PsReplica {
  # `durability: replica`: what one ps keeps of another's shard (common/ps/replicator.h). The caller
  # says one thing at a time, and its update counts, which means that a worker may see it, only when
  # the answer is there.

  arena @0 (index :UInt32, values :List(Data)) -> ();
  # Of the seed to come: 0 the parameters, then the optimizer's slots.

  seed @1 (state :ReplicaState) -> ();
  # What arena() brought takes the place of what was kept.

  update @2 (epoch :UInt64, version :UInt64, loss :Float32, pushes :List(Push), gradient :List(Data), rows :List(UInt32))
      -> ();
  # `rows`: as in PsData.exchange. Answered when it is received, whole; it may be applied later.
  # Repeated, it has its effect once.

  fetch @3 () -> (state :ReplicaState, arenas :UInt32);
  # For a process of the caller that holds nothing. Errors: unavailable when nothing is kept.

  fetched @4 (index :UInt32) -> (values :List(Data));
  # After fetch(). One more than the slots: the parameters before the last update.

  struct Push {
    rank @0 :UInt32;
    incarnation @1 :UInt64;  # async: of the worker
    step @2 :UInt64;
    progress @3 :UInt64;     # bounded: of the worker, with this push
  }
}

struct ReplicaState {
  epoch @0 :UInt64;
  origin @1 :UInt8;        # as ps::EpochOrigin
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
    steps @1 :UInt64;        # one more than the last that it pushed
    sets @2 :UInt64;         # bit k: it was among those of the update before the last k
    loss @3 :Float32;
    progress @4 :UInt64;     # bounded: with its last push
  }
}

interface SyncLeader {
  # Sync with backup workers: which workers make up a step is decided in one place, on ps/0, among
  # those whose gradients are on every ps. So all ps apply the same set, whole.
  received @0 (step :UInt64, rank :UInt32, epoch :UInt64) -> ();
  # The gradient of `rank` for `step` is on the ps that was given this capability.
}

interface SyncFollower {
  decided @0 (step :UInt64, ranks :List(UInt32), epoch :UInt64) -> ();
  # What is of an epoch that the callee has left has no effect, here and there.
}
