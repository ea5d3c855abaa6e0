@0xa7d3c15e9b204f68;
# How a session runs the parts of its graph on tasks that serve (`psd --serve`, `workerd --serve`),
# and how these tasks pass tensors to each other. Training jobs talk otherwise: ps.capnp.
#
# The master is the client: it prunes, places and cuts the graph (common/engine/README.md), and
# holds one connection to each of its tasks. A task has one connection to each other task that it
# sends to, for each session.
#
#   client -> every task    hello(token)                    -> a GraphSession, and which process
#                                                           answers
#   client -> every task    registerPart(plan, part)        once for each signature, before its
#                                                           first step
#   client -> a task        setVariable(variable, value)
#   client -> every task    reset(container)
#   client -> every task    runPart(plan, step, feeds)      -> what is fetched. Repeats; all tasks
#                                                           of a step at once
#     task -> task          tensors(token)                  -> a TensorSink; before the first tensor
#     task -> task          sendTensors(plan, step, ...)    as soon as they exist, many to a message
#   client -> every task    abort(step, cause)              when any of them has failed, is late or
#                                                           lost
#   client -> every task    releasePart(plan)
#
# Identity. A session has a number that its client draws, and never uses again, and a secret, which
# it tells to the session's tasks: who doesn't know it sends them nothing. Steps are numbered by the
# client, each number is used once. A tensor is known by (session, step, process of the sender,
# edge): it is taken once, and what comes when its step is over, or from another process than the
# part was registered with, has no effect.
#
# A session is as good as all of its processes: when one is lost, or its connection breaks, the
# client opens another session, under another number, on the processes that there are then. So the
# number says what an epoch says in a training job, and no call carries one besides. A session ends
# with the client's connection: its steps are aborted, what it holds is freed, also what its tasks
# have parked for each other.
#
# Variables are the task's, not the session's. One is known by (device, container, name), and is
# there, with its value, for as long as the process, or until its container is reset: all sessions
# whose parts name it share it. What a step assigns is there before it is answered, each op's
# assignment whole; a client that goes takes nothing of it back.
#
# So are queues. A step that waits for one holds up no thread, and no step but those behind it in
# that queue and the next one of its plan. When it ends for another reason, its deadline, an abort
# or the loss of its client, it gives up its place and takes nothing later; what it has taken before
# that is lost with it.
#
# Deadlines: the client's step has one, and each runPart carries what is left of it: the task ends
# the step by itself then, should the client be gone without a word. A task owes an answer to
# abort() when what computes has ended.
#
# Limits: 64 KiB a message before the hello; after it 16 GiB, and each blob at most 256 MiB (a
# tensor is as many as it takes). What a session may hold is bounded, too (daemons/served_task.h).
#
# All connections are of the kind bulk (common/net/preamble.h).

using Cxx = import "/capnp/c++.capnp";
using Types = import "types.capnp";
$Cxx.namespace("dtf::schema");

interface TaskGate {
  # Bootstrap of a task that serves.

  hello @0 (token :SessionToken)
      -> (session :GraphSession, task :Types.Task, incarnation :UInt64, devices :List(Text), bytesMax :UInt64,
          cluster :List(ClusterTask));
  # Opens a session, once. `devices`: full names. `cluster`: all tasks of its cluster file, so that
  # a client that knows one reaches the others that its graph names; not from a task of a version
  # before this field. `bytesMax`: what the task may hold for all sessions together, so that the
  # tensors of one message may have no more; of a message of twice as much it closes the connection.
  # Errors: unavailable when the task has as many sessions as it may; bad_data when that session is
  # open, or there is no secret. Said again on another connection, with the same secret and before
  # anything was asked of the session, it takes the place of the first: that one's answer was lost.

  tensors @1 (token :SessionToken, caller :Types.Task, callee :Types.Task, incarnation :UInt64)
      -> (sink :TensorSink, incarnation :UInt64, bytesMax :UInt64);
  # For another task of the session. `incarnation`: of the caller, then of the callee. `bytesMax`:
  # as above. Errors: unavailable when there is no such session (any more), or the secret is
  # another; bad_config when this is not `callee`.

  status @2 () -> (json :Text);
  # For people and tools: the sessions, what they hold. Never refused, and tells no secret.
}

struct ClusterTask {
  task @0 :Types.Task;
  address @1 :Text;      # "host:port", as the cluster file of the task that tells it has it
}

struct SessionToken {
  number @0 :UInt64;   # for logs and people
  secret0 @1 :UInt64;  # these two from the kernel's random source
  secret1 @2 :UInt64;
}

interface GraphSession {
  registerPart @0 (plan :UInt64, part :Part, digest :UInt64) -> ();
  # `plan`: a number of the client's, the same for all tasks that have a part in it. `digest`:
  # engine::digestOf(part); told again with the same digest, it is the same registration. Answered
  # when the part is compiled. Errors: bad_config, naming the node, also for a variable that is
  # there with another type or shape; bad_data for a part that isn't what the digest is of, or
  # another one under a number that is taken; unavailable for more than a session may hold, and for
  # a part that is released before it is compiled.

  releasePart @1 (plan :UInt64) -> ();
  # No more steps of this plan. One that runs goes on; what is being compiled is dropped. Unknown
  # plans are nothing to release.

  setVariable @2 (device :Text, container :Text, name :Text, value :Tensor) -> ();
  # Steps that begin after the answer read it. `device`: a full name of one that the task has.
  # Errors: unavailable when the task may hold no more; bad_config for another type or shape than
  # the variable has.

  runPart @3 (plan :UInt64, step :UInt64, deadlineMs :UInt32, feeds :List(Tensor), trace :Bool)
      -> (fetches :List(Tensor), kernels :UInt64, trace :PartTrace);
  # Feeds and fetches are in the order of Part.feeds and Part.fetches. `trace`: what the part does
  # and when is recorded, and is in the answer; a task of a version before these fields answers
  # without. Answered when the part has run, and what it sent has arrived. Errors: of the first
  # kernel that failed; what abort() said; deadline; bad_config for a variable without a value;
  # bad_data for a plan that runs already, a step that has begun before, or feeds that don't fit.

  abort @4 (step :UInt64, cause :Text) -> ();
  # `cause`: the root cause, as errors travel (common/net/error_bridge.h); its first 4 MiB count.
  # Whoever waits in this step is answered with it, now or later. Answered when nothing of the step
  # runs here any more.

  reset @6 (container :Text) -> ();
  # The variables of the container, which other sessions may have made and use, have no value from
  # now on; what a step holds of one is freed with the step. Its queues are empty and open, and a
  # step that waits for one fails with unavailable. A task of a version before queues resets its
  # variables alone.

  load @5 () -> (steps :UInt64, parked :UInt64, ownedBytes :UInt64, waiting :UInt64);
  # What is on its way to this task: engine::RendezvousLoad.
}

interface TensorSink {
  sendTensors @0 (plan :UInt64, step :UInt64, tensors :List(EdgeTensor)) -> (over :Bool);
  # Answered when they are here. `over`: the step has ended, or was aborted; nobody will take them.
  # Errors: bad_data for an edge that doesn't come from the caller, a tensor of another size, or one
  # that has been sent before; unavailable when more wait here than a session may hold.
}

struct EdgeTensor {
  edge @0 :UInt32;       # its number in the plan
  bytes @1 :List(Data);  # its elements, as in Tensor
}

struct PartTrace {
  # What a task did in one step: trace::TaskTrace. Times are CLOCK_MONOTONIC's of its host, in
  # nanoseconds.
  beginNs @0 :Int64;        # of the part
  endNs @1 :Int64;
  tracks @2 :List(Text);    # what spans are shown in: threads, and one for each kind that runs in none
  spans @3 :List(Span);     # as they ended; at most 4096, their texts at most 1 MiB
  dropped @4 :UInt64;       # spans beyond that
  anchorNs @5 :Int64;       # one moment, and the same as
  anchorUnixUs @6 :Int64;   # microseconds since 1970

  struct Span {
    kind @0 :UInt8;         # 0 op, 1 piece, 2 receive, 3 send; of another one the reader knows nothing, and leaves it out
    track @1 :UInt16;       # index into tracks
    name @2 :Text;          # of an op, as in the graph
    detail @3 :Text;
    beginNs @4 :Int64;
    endNs @5 :Int64;
  }
}

struct Tensor {
  dtype @0 :UInt8;       # 1 float32, 2 uint8, 3 int32, 4 int64
  shape @1 :List(Int64);
  bytes @2 :List(Data);  # elements in row-major order, little-endian; blobs of 256 MiB, the last one shorter
}

struct Part {
  # engine::TaskPart: what one task does in each step of a plan.
  task @0 :Types.Task;
  devices @1 :List(Text);
  nodes @2 :List(Node);        # each after those that it reads or waits for
  fetches @3 :List(Output);
  feeds @4 :List(UInt32);      # nodes: Placeholders that each step is given
  folded @5 :List(Value);      # Placeholders that have a value
  edges @6 :List(Edge);        # of each _Send and _Recv, in the nodes' order
  edgesTotal @7 :UInt32;       # of the plan

  struct Node {
    name @0 :Text;
    op @1 :Text;
    device @2 :UInt16;         # index into devices
    inputs @3 :List(Output);
    after @4 :List(UInt32);    # control inputs
    attributes @5 :List(Attribute);
  }
  struct Output {
    node @0 :UInt32;
    index @1 :UInt32;
  }
  struct Attribute {
    name @0 :Text;
    value :union {
      truth @1 :Bool;
      integer @2 :Int64;
      number @3 :Float64;
      text @4 :Text;
      dtype @5 :UInt8;
      shape @6 :List(Int64);
      function @7 :Function;
      nothing @8 :Void;          # a function that isn't there
    }
  }
  struct Function {
    # Of an If or a While. Its nodes run where that one runs, and their device is 0.
    nodes @0 :List(Node);
    parameters @1 :List(UInt32);
    results @2 :List(Output);
  }
  struct Value {
    node @0 :UInt32;
    value @1 :Tensor;
  }
  struct Edge {
    node @0 :UInt32;
    number @1 :UInt32;
    peer @2 :Types.Task;         # that has the other end
    incarnation @3 :UInt64;      # the process of the peer that is in this session
  }
}
