@0xc5d7ef4b5a4f2e90;
# The services of a workerd at its own address.

using Cxx = import "/capnp/c++.capnp";
using Ps = import "ps.capnp";
$Cxx.namespace("dtf::schema");

interface WorkerGate {
  # Bootstrap of a workerd's control connections.

  status @0 () -> (json :Text);
  # For people and tools: current and total steps, loss, rates. Never rejected.
}

interface HostingWorkerGate extends(Ps.PsGate, WorkerGate) {
  # Bootstrap of the control connections of a worker that hosts a shard: the workers of a job
  # without ps are each other's ps.
}
