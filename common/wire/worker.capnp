@0xc5d7ef4b5a4f2e90;
# What a workerd answers on its own address.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("dtf::schema");

interface WorkerGate {
  # Bootstrap of a workerd's control connections.

  status @0 () -> (json :Text);
  # For people and tools: the step it is at, of how many, its loss, the rates. Never refused.
}
