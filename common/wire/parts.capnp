@0xa7d3c15e9b204f68;
# The protocol of sessions: a client runs the parts of its graph on tasks that serve (`psd --serve`,
# `workerd --serve`), and these tasks send tensors to each other. Training jobs use ps.capnp.
#
# The master is the client: it prunes, places and cuts the graph (common/engine/README.md), and
# holds one connection to each of its tasks. For each session, a task has one connection to each
# other task that it sends to.
#
#   client -> every task    hello(token)                    -> a GraphSession, and the process that
#                                                           replies
#   client -> every task    registerPart(plan, part)        once for each signature, before its
#                                                           first step
#   client -> a task        setVariable(variable, value)
#   client -> every task    reset(container)
#   client -> every task    runPart(plan, step, feeds)      -> the fetches. Repeats; all tasks of a
#                                                           step at once
#     task -> task          tensors(token)                  -> a TensorSink; before the first tensor
#     task -> task          sendTensors(plan, step, ...)    as soon as they exist, many to a message
#   client -> every task    abort(step, cause)              when any of them has failed, is late or
#                                                           lost
#   client -> every task    releasePart(plan)
#
# Identity. A session has a number, drawn by its client and never reused, and a secret that only its
# tasks get: without it a process can't send them anything. The client numbers the steps, and uses
# each number once. A tensor is identified by (session, step, process of the sender, edge). It is
# accepted once; a tensor that arrives after the end of its step, or from another process than the
# registered one, has no effect.
#
# A session lives only as long as all of its processes: when one is lost, or its connection breaks,
# the client opens another session, with a new number, on the current processes. So the session
# number serves as the epoch does in a training job, and calls carry no epoch. A session ends with
# the client's connection: its steps are aborted and its resources freed, including tensors parked
# on its tasks.
#
# Variables belong to the task, not to the session. A variable is identified by (device, container,
# name), and keeps its value until the process ends or its container is reset: all sessions whose
# parts name it share it. Assignments of a step are done before its reply, each op's assignment
# atomically; they remain when a client disconnects.
#
# Queues likewise. A step that waits for a queue blocks no thread, and no step but later ones in
# that queue and the next one of its plan. If it ends for another reason (its deadline, an abort or
# the loss of its client), it gives up its place and takes nothing later; elements that it has taken
# before are lost with it.
#
# Deadlines: the client's step has one, and each runPart carries the remaining time: the task then
# ends the step by itself, in case the client has vanished. A task replies to abort() when its
# computation has ended.
#
# Limits: 64 KiB a message before the hello; after it 16 GiB, and each blob at most 256 MiB (a
# tensor is as many blobs as it needs). A session's resources are bounded, too
# (common/serving/served_task.h).
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
  # a client that knows one task can reach the others that its graph names; missing from older
  # tasks. `bytesMax`: the bound on memory of all sessions together, and so on the tensors of one
  # message; the task closes the connection on a message of twice this size.
  # Errors: unavailable at the limit of sessions; bad_data if that session is open, or there is no
  # secret. A repetition on another connection, with the same secret and before any other call of
  # the session, replaces the first: its reply was lost.

  tensors @1 (token :SessionToken, caller :Types.Task, callee :Types.Task, incarnation :UInt64)
      -> (sink :TensorSink, incarnation :UInt64, bytesMax :UInt64);
  # For another task of the session. `incarnation`: of the caller, then of the callee. `bytesMax`:
  # as above.
  # Errors: unavailable if there is no such session (any more), or for another secret; bad_config if
  # this is not `callee`.

  status @2 () -> (json :Text);
  # For people and tools: the sessions and their resources. Never rejected, and contains no secret.
}

struct ClusterTask {
  task @0 :Types.Task;
  address @1 :Text;      # "host:port", from the replying task's cluster file; "host:auto": the kernel
                         # chose a port that the replying task doesn't learn
}

struct SessionToken {
  number @0 :UInt64;   # for logs and people
  secret0 @1 :UInt64;  # these two from the kernel's random source
  secret1 @2 :UInt64;
}

interface GraphSession {
  registerPart @0 (plan :UInt64, part :Part, digest :UInt64) -> ();
  # `plan`: a number chosen by the client, the same for all tasks with a part in it. `digest`:
  # engine::digestOf(part); a repetition with the same digest is the same registration. Replies when
  # the part is compiled.
  # Errors: bad_config with the node, also for an existing variable with another type or shape;
  # bad_data for a part that doesn't match its digest, or for another part under a used number;
  # unavailable beyond a session's bounds, and for a part that is released before it is compiled.

  releasePart @1 (plan :UInt64) -> ();
  # Ends the steps of this plan. A running step continues; a part being compiled is dropped. Unknown
  # plans are ignored.

  setVariable @2 (device :Text, container :Text, name :Text, value :Tensor) -> ();
  # Steps that begin after the reply read the value. `device`: a full name of the task's.
  # Errors: unavailable without memory; bad_config for another type or shape than the variable's.

  runPart @3 (plan :UInt64, step :UInt64, deadlineMs :UInt32, feeds :List(Tensor), trace :Bool)
      -> (fetches :List(Tensor), kernels :UInt64, trace :PartTrace);
  # Feeds and fetches are in the order of Part.feeds and Part.fetches. `trace`: requests a record of
  # the part's actions and times in the reply; older tasks reply without. Replies when the part has
  # run, and its sends have arrived.
  # Errors: of the first kernel that failed; the cause of abort(); deadline; bad_config for a
  # variable without a value; bad_data for a plan that is running, a step that has begun before, or
  # feeds that don't fit.

  abort @4 (step :UInt64, cause :Text) -> ();
  # `cause`: the root cause, encoded like all errors (common/net/error_bridge.h); its first 4 MiB
  # count. Calls that wait in this step fail with it, now or later. Replies when nothing of the step
  # runs here any more.

  reset @6 (container :Text) -> ();
  # Drops the values of the container's variables, even if other sessions made them or use them;
  # values held by a step are freed with it. Its queues become empty and open, and steps that wait
  # for one fail with unavailable. A task of a version before queues resets its variables alone.

  load @5 () -> (steps :UInt64, parked :UInt64, ownedBytes :UInt64, waiting :UInt64);
  # Returns the tensors in transit to this task: engine::RendezvousLoad.
}

interface TensorSink {
  sendTensors @0 (plan :UInt64, step :UInt64, tensors :List(EdgeTensor)) -> (over :Bool);
  # Replies when they have arrived. `over`: the step has ended, or was aborted; there is no
  # receiver.
  # Errors: bad_data for an edge that isn't the caller's, a tensor of another size, or one that was
  # sent before; unavailable when more tensors wait here than a session may hold.
}

struct EdgeTensor {
  edge @0 :UInt32;       # its number in the plan
  bytes @1 :List(Data);  # its elements, as in Tensor
}

struct PartTrace {
  # The actions of a task in one step: trace::TaskTrace. Times are CLOCK_MONOTONIC of its host, in
  # nanoseconds.
  beginNs @0 :Int64;        # of the part
  endNs @1 :Int64;
  tracks @2 :List(Text);    # the rows for spans: threads, and one for each kind without a thread
  spans @3 :List(Span);     # in the order of their ends; at most 4096, their texts at most 1 MiB
  dropped @4 :UInt64;       # spans beyond that
  anchorNs @5 :Int64;       # one moment, and the same as
  anchorUnixUs @6 :Int64;   # microseconds since 1970

  struct Span {
    kind @0 :UInt8;         # 0 op, 1 piece, 2 receive, 3 send; a reader skips unknown kinds
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
  # engine::TaskPart: the work of one task in each step of a plan.
  task @0 :Types.Task;
  devices @1 :List(Text);
  nodes @2 :List(Node);        # each after its inputs and control inputs
  fetches @3 :List(Output);
  feeds @4 :List(UInt32);      # nodes: Placeholders fed in each step
  folded @5 :List(Value);      # Placeholders with a constant value
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
      nothing @8 :Void;          # no function
    }
  }
  struct Function {
    # For an If or a While. Its nodes run on the device of that node, and their device is 0.
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
    peer @2 :Types.Task;         # the task with the other end
    incarnation @3 :UInt64;      # the process of the peer in this session
  }
}
