@0xc5d0f1b7a2984e63;
# Measurements between two hosts: `dtf-launch check --network`, before a job starts. The connection
# is made like a task's (preamble, TLS if the job has keys), and the bytes are sent like gradients;
# the receiver drops them.
#
#   hello()                     verifies the host's identity
#   take("")                    round trips, one after the other
#   take(bytes)                 several at once, for less than a second

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("dtf::schema");

interface NetworkProbe {
  hello @0 () -> (identity :Text);
  # Identifies this process, as known to its starter: an address like 172.17.0.1 belongs to another
  # machine on each host.

  take @1 (bytes :Data) -> ();
  # At most 1 MiB. Errors: unavailable once this connection has received more than a measurement
  # needs.
}
